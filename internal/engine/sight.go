// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// sights are what the XRs of a controller saw in their last runs, kept only if
// somebody verifies: they hold on to objects that have changed since.
type sights struct {
	mu   sync.Mutex
	byXR map[types.NamespacedName]*sight // guarded by mu
}

// sight is what one XR saw.
type sight struct {
	run     uint64 // counts the XR's runs
	running bool
	// asked says that the XR was asked to run since its last run began.
	asked   bool
	seen    []seen
	suspect suspicion
}

// suspicion is what a check found: that an XR should have been asked to run, since
// objects of a kind differ from what it saw. An event is delivered after its object
// is there, behind those before it, so one check alone proves nothing.
type suspicion struct {
	kind schema.GroupVersionKind
	run  uint64 // of the XR, since when it was not asked
	// version is up to where the kind's informer had come, handled the version of
	// the last event of which XRs were told.
	version, handled string
}

// proves says that s, later than the first suspicion, leaves no event that could
// still be on its way.
func (s suspicion) proves(first suspicion) bool {
	return s.run == first.run && s.kind == first.kind && (s.handled == first.handled || !older(s.handled, first.version))
}

// seen is what a reference meant when an XR read it.
type seen struct {
	reference dependency.Reference
	objects   []*unstructured.Unstructured // shared, as the informer returned them
}

func (s *sights) of(name types.NamespacedName) *sight {
	one := s.byXR[name]
	if one == nil {
		one = &sight{}
		s.byXR[name] = one
	}
	return one
}

func (s *sights) ask(requests []reconcile.Request) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range requests {
		s.of(r.NamespacedName).asked = true
	}
}

func (s *sights) begin(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of(name)
	one.run++
	one.running, one.asked, one.seen = true, false, nil
}

func (s *sights) end(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, ok := s.byXR[name]; ok { // not if the run forgot the XR
		one.running = false
	}
}

func (s *sights) saw(name types.NamespacedName, what seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of(name)
	one.seen = append(one.seen, what)
}

// settle keeps, of what an XR saw, what is in its record.
func (s *sights) settle(name types.NamespacedName, composed []dependency.Reference, required []dependency.Requirement) {
	if s == nil {
		return
	}
	isRecorded := func(r dependency.Reference) bool {
		return slices.ContainsFunc(composed, func(c dependency.Reference) bool { return sameReference(c, r) }) ||
			slices.ContainsFunc(required, func(q dependency.Requirement) bool { return sameReference(q.Reference, r) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of(name)
	one.seen = slices.DeleteFunc(one.seen, func(s seen) bool { return !isRecorded(s.reference) })
}

func sameReference(a, b dependency.Reference) bool {
	return a.GVK == b.GVK && a.Namespace == b.Namespace && a.Name == b.Name && maps.Equal(a.Labels, b.Labels)
}

func (s *sights) forget(name types.NamespacedName) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byXR, name)
}

// resting returns what the XRs saw that neither run nor were asked to.
func (s *sights) resting() map[types.NamespacedName][]seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[types.NamespacedName][]seen, len(s.byXR))
	for name, one := range s.byXR {
		if !one.running && !one.asked {
			out[name] = one.seen
		}
	}
	return out
}

// judge takes note of what a check found, nothing if found is nil, and says whether
// that proves what the check before suspected.
func (s *sights) judge(name types.NamespacedName, found *suspicion) (missed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.byXR[name]
	if !ok || one.running || one.asked {
		return false
	}
	if found == nil {
		one.suspect = suspicion{}
		return false
	}
	found.run = one.run
	missed = found.proves(one.suspect)
	one.suspect = *found
	return missed
}
