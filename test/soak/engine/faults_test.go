// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/http"

	"github.com/crosswatch-io/crosswatch/test/soak"
	"github.com/crosswatch-io/crosswatch/test/watchserver"
)

// faults are what happens to watches now and then. One goroutine uses them.
type faults struct {
	script *soak.Script
	server *watchserver.Server
	mix    []soak.Weighted
	// withdrawn and forbidden are the kinds that nobody can read.
	withdrawn, forbidden map[string]bool
	// troubled are the kinds that fail for now.
	troubled map[string]bool
}

// newFaults returns the faults of a server, which serves all kinds from then on.
func newFaults(script *soak.Script, server *watchserver.Server) *faults {
	f := &faults{script: script, server: server, withdrawn: map[string]bool{}, forbidden: map[string]bool{}, troubled: map[string]bool{}}
	f.mix = []soak.Weighted{
		f.weighted(30, func() { f.server.Cut(soak.GVK(f.script.Kind())) }),
		f.weighted(20, f.expire),
		f.weighted(5, f.withdraw),
		f.weighted(5, f.forbid),
		f.weighted(3, func() { f.trouble(http.StatusInternalServerError) }),
		f.weighted(3, func() { f.trouble(http.StatusTooManyRequests) }),
		f.weighted(3, f.hang),
	}
	for _, kind := range soak.AllKinds() {
		f.serve(kind)
	}
	return f
}

func (*faults) weighted(weight int, do func()) soak.Weighted {
	return soak.Weighted{Weight: weight, Do: func(*soak.Script) { do() }}
}

// one has one of the faults.
func (f *faults) one() { f.script.One(f.mix) }

func (f *faults) serve(kind string) {
	f.server.Serve(watchserver.Kind{GVK: soak.GVK(kind), Resource: soak.Resource(kind), Namespaced: kind != soak.ClusterKind})
}

func (f *faults) expire() {
	kind := soak.GVK(f.script.Kind())
	f.server.Compact(kind)
	f.server.Cut(kind)
}

// hang makes a kind's watch hang until calm.
func (f *faults) hang() {
	kind := f.script.Kind()
	f.troubled[kind] = true
	f.server.Hang(soak.GVK(kind), true)
	f.server.Cut(soak.GVK(kind))
}

// withdraw removes a kind or, if it is gone, brings it back.
func (f *faults) withdraw() {
	kind := soak.Pick(f.script, append([]string{soak.ComposedKind}, soak.ThingKinds...))
	if f.withdrawn[kind] {
		delete(f.withdrawn, kind)
		f.serve(kind)
		return
	}
	f.script.Changes += len(f.server.Names(soak.GVK(kind)))
	f.server.Withdraw(soak.GVK(kind))
	delete(f.troubled, kind)
	delete(f.forbidden, kind)
	f.withdrawn[kind] = true
}

// forbid takes the right to read a kind away or, if it is missing, gives it back.
func (f *faults) forbid() {
	kind := soak.Pick(f.script, append([]string{soak.ComposedKind}, soak.ThingKinds...))
	if f.withdrawn[kind] {
		return
	}
	if f.forbidden[kind] {
		delete(f.forbidden, kind)
		f.server.Refuse(soak.GVK(kind), 0)
		return
	}
	f.forbidden[kind] = true
	f.server.Refuse(soak.GVK(kind), http.StatusForbidden)
	f.server.Cut(soak.GVK(kind))
}

// trouble makes a kind fail until calm.
func (f *faults) trouble(status int) {
	kind := f.script.Kind()
	if f.forbidden[kind] || f.withdrawn[kind] {
		return
	}
	f.troubled[kind] = true
	f.server.Refuse(soak.GVK(kind), status)
	f.server.Cut(soak.GVK(kind))
}

// calm ends what makes kinds fail, but for what was withdrawn and forbidden.
func (f *faults) calm() {
	for kind := range f.troubled {
		f.server.Hang(soak.GVK(kind), false)
		if !f.forbidden[kind] {
			f.server.Refuse(soak.GVK(kind), 0)
		}
	}
	clear(f.troubled)
}

// unreadable says that a kind can't be read, and XRs that require it are blind.
func (f *faults) unreadable(kind string) bool { return f.withdrawn[kind] || f.forbidden[kind] }
