// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/crosswatch-io/crosswatch/test/faults"
	"github.com/crosswatch-io/crosswatch/test/soak"
)

// fault begins something that goes wrong, and returns how it ends.
type fault func(context.Context) (heal func() error, err error)

func healed() error { return nil }

// weighted is a fault that is the likelier the more it weighs.
type weighted struct {
	weight int
	begin  fault
}

// faults are what happens between operator and API server, and to either.
func (s *trial) faults() []weighted {
	return []weighted{
		{20, s.cut},
		{5, s.down},
		{5, s.inject(faults.Fault{Status: http.StatusInternalServerError, Share: 0.5})},
		{5, s.inject(faults.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Second, Share: 0.5})},
		{5, s.inject(faults.Fault{Delay: 100 * time.Millisecond})},
		{5, s.inject(faults.Fault{Lose: true, Share: 0.3})},
		{5, s.inject(faults.Fault{Hang: true, On: faults.Watches})},
		{5, s.inject(faults.Fault{Status: http.StatusGone, On: faults.Continuing})},
		{5, s.expire},
		{10, s.terminate},
		{5, s.kill},
		{10, s.withdraw},
		{10, s.forbid},
		{5, s.redefine},
		{1, s.restartAPIServer},
	}
}

func (s *trial) fault() fault {
	all, total := s.faults(), 0
	for _, w := range all {
		total += w.weight
	}
	at := s.script.Rand.IntN(total)
	for _, w := range all {
		if at -= w.weight; at < 0 {
			return w.begin
		}
	}
	panic("weights that do not add up")
}

// cut ends the watches of a kind, or all.
func (s *trial) cut(context.Context) (func() error, error) {
	var on faults.Predicate
	if s.script.Rand.IntN(4) > 0 {
		kind := s.script.Kind()
		on = faults.Resource(soak.GVK(kind).Group, soak.Resource(kind))
	}
	s.cluster.proxy.Cut(soak.Pick(s.script, []faults.How{faults.Regularly, faults.Abruptly, faults.MidObject}), on)
	return healed, nil
}

// down makes the API server unreachable; after some seconds, that ends the leader.
func (s *trial) down(context.Context) (func() error, error) {
	s.cluster.proxy.Down()
	return s.cluster.proxy.Up, nil
}

// inject makes a fault happen to what is asked from then on, for which watches begin
// anew.
func (s *trial) inject(f faults.Fault) fault {
	return func(context.Context) (func() error, error) {
		i := s.cluster.proxy.Inject(f)
		s.cluster.proxy.Cut(faults.Abruptly, nil)
		return func() error { i.Heal(); return nil }, nil
	}
}

// expire makes etcd forget what was.
func (s *trial) expire(ctx context.Context) (func() error, error) {
	err := s.cluster.Plane.CompactEtcd(ctx)
	s.cluster.proxy.Cut(faults.Abruptly, nil)
	return healed, err
}

func (s *trial) terminate(context.Context) (func() error, error) {
	return healed, soak.Pick(s.script, s.cluster.replicas).end(syscall.SIGTERM)
}

func (s *trial) kill(context.Context) (func() error, error) {
	return healed, soak.Pick(s.script, s.cluster.replicas).end(syscall.SIGKILL)
}

// withdraw takes a kind away or, if it is gone, brings it back.
func (s *trial) withdraw(ctx context.Context) (func() error, error) {
	kind := soak.Pick(s.script, append([]string{soak.ComposedKind}, soak.ThingKinds...))
	if err := s.objects.flush(); err != nil {
		return healed, err
	}
	if s.cluster.kinds.withdrawn[kind] {
		err := s.cluster.kinds.define(ctx, kind)
		s.objects.reset(kind, false, nil)
		return healed, err
	}
	gone, err := s.cluster.kinds.withdraw(ctx, kind)
	s.objects.done.Add(int64(gone))
	s.objects.reset(kind, true, nil)
	return healed, err
}

// forbid takes the grant of a kind away or, if it is missing, gives it back. API
// servers look at grants when a watch begins.
func (s *trial) forbid(ctx context.Context) (func() error, error) {
	kinds := s.cluster.kinds
	kind := soak.Pick(s.script, append([]string{soak.ComposedKind}, soak.ThingKinds...))
	if kinds.withdrawn[kind] {
		return healed, nil
	}
	if kinds.forbidden[kind] {
		return healed, kinds.permit(ctx, kind)
	}
	err := kinds.forbid(ctx, kind)
	s.cluster.proxy.Cut(faults.Abruptly, faults.Resource(soak.GVK(kind).Group, soak.Resource(kind)))
	return healed, err
}

func (s *trial) redefine(ctx context.Context) (func() error, error) {
	return healed, s.cluster.redefine(ctx, soak.Pick(s.script, soak.XRKinds), strconv.Itoa(s.script.Rand.Int()))
}

// restartAPIServer ends the API server, and starts it with the same data.
func (s *trial) restartAPIServer(ctx context.Context) (func() error, error) {
	if err := s.objects.flush(); err != nil {
		return healed, err
	}
	return healed, errors.Join(s.cluster.Plane.StopAPIServer(), s.cluster.Plane.StartAPIServer(ctx))
}
