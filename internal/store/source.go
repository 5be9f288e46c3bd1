// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

const (
	verbList  = "list"
	verbWatch = "watch"
)

// A RequestError is the failure of a list or watch. It wraps what the API
// server answered.
type RequestError struct {
	Verb string // list or watch
	Err  error
}

func (e *RequestError) Error() string { return fmt.Sprintf("cannot %s: %v", e.Verb, e.Err) }
func (e *RequestError) Unwrap() error { return e.Err }

// Backoff returns how requests that failed are tried again: quickly at first,
// since a CRD is announced a moment before it is served, and then seldom, since
// each try may be refused again.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Cap: 10 * time.Second, Steps: 1 << 16}
}

// source sends an informer's requests. No request of it lasts for ever, however
// the API server behaves, and all end as soon as the informer is stopped.
type source struct {
	client dynamic.ResourceInterface
	kind   Kind
	timing Timing
	failed func(error)

	once     sync.Once
	watching chan struct{} // closed once, when the first watch is open
}

func newSource(client dynamic.Interface, kind Kind, t Timing, failed func(error)) *source {
	return &source{
		client: client.Resource(kind.Resource), kind: kind, timing: t.OrDefaults(), failed: failed, watching: make(chan struct{}),
	}
}

// listerWatcher is the source as a reflector wants it.
func (s *source) listerWatcher(client dynamic.Interface) cache.ListerWatcher {
	lw := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	if !s.kind.Watchable {
		lw.WatchFuncWithContext = s.poll
	}
	return cache.ToListWatcherWithWatchListSemantics(lw, client)
}

func (s *source) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return keepAsking(ctx, verbList, s.failed, func() (runtime.Object, error) {
		ctx, cancel := context.WithTimeout(ctx, s.timing.List)
		defer cancel()
		return s.client.List(ctx, o)
	})
}

func (s *source) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := keepWatching(ctx, s.timing.Silence, s.failed, func() (watch.Interface, error) { return s.open(ctx, o) })
	if err == nil {
		s.once.Do(func() { close(s.watching) })
	}
	return w, err
}

// open opens one watch. It ends after a time of its own, since permissions are
// looked at only when a watch begins; and here, if the API server forgets to.
func (s *source) open(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	lasts := s.timing.Watch/2 + rand.N(s.timing.Watch/2+1) //nolint:gosec // spreads what need not come at once
	seconds := max(1, int64(lasts.Seconds()))
	o.TimeoutSeconds = &seconds

	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(s.timing.Answer, cancel)
	w, err := s.client.Watch(ctx, o)
	if err != nil {
		late.Stop()
		cancel()
		return nil, err
	}
	late.Reset(time.Duration(seconds)*time.Second + s.timing.Answer)
	return &bounded{Interface: w, late: late, cancel: cancel}, nil
}

// bounded is a watch whose request is given up when it is late.
type bounded struct {
	watch.Interface

	late   *time.Timer
	cancel context.CancelFunc
}

func (b *bounded) Stop() {
	b.late.Stop()
	b.cancel()
	b.Interface.Stop()
}

// poll stands in for a watch where there is none: nothing happens until it is
// time to list again.
func (s *source) poll(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewMethodNotSupported(s.kind.Resource.GroupResource(), "watch")
	}
	s.once.Do(func() { close(s.watching) })
	events := make(chan watch.Event, 1)
	expired := apierrors.NewResourceExpired("the objects are to be listed again").Status()
	over := time.AfterFunc(s.timing.Poll, func() { events <- watch.Event{Type: watch.Error, Object: &expired} })
	return &pause{events: events, over: over}, nil
}

// pause is a watch of which nothing comes but its end.
type pause struct {
	events chan watch.Event
	over   *time.Timer
}

func (p *pause) ResultChan() <-chan watch.Event { return p.events }
func (p *pause) Stop()                          { p.over.Stop() }
