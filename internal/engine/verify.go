// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/store"
	"github.com/crosswatch-io/crosswatch/internal/xr"
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

func (s *sights) ask(name types.NamespacedName) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(name).asked = true
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

// seer tells the sights when the XRs run.
type seer struct {
	reconcile.Reconciler

	sights *sights
}

func (s seer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s.sights.begin(req.NamespacedName)
	defer s.sights.end(req.NamespacedName)
	return s.Reconciler.Reconcile(ctx, req)
}

// Saw tells what a reference meant when the XR's run read it, for a later check;
// it costs nothing if there are none.
func (c *Controller) Saw(xr types.NamespacedName, r dependency.Reference, objects ...*unstructured.Unstructured) {
	if c.sights != nil {
		c.sights.saw(xr, seen{r, slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o == nil })})
	}
}

// verify checks, at every interval until ctx ends, that each XR saw what there is.
func (e *Engine) verify(ctx context.Context) {
	ticker := time.NewTicker(e.verifyInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for _, c := range e.Controllers() {
				c.verify()
			}
		case <-ctx.Done():
			return
		}
	}
}

// verify reports each XR that what it depends on differs for from what it saw, and
// that nothing asked to run since; and asks it.
func (c *Controller) verify() {
	for name, all := range c.sights.resting() {
		found := c.suspect(name, all)
		if !c.sights.judge(name, found) {
			continue
		}
		c.metrics.missed.Inc()
		c.log.Error(nil, "An XR was not woken for a change. It is now; please report this.", "xr", name.String(), "changed", found.kind.String())
		c.Enqueue(name)
	}
}

// suspect compares what an XR saw with what there is.
func (c *Controller) suspect(name types.NamespacedName, all []seen) *suspicion {
	if own := c.engine.lookout(c.kind); own.informer != nil && !c.isKnown(name, own.informer.Get(name.Namespace, name.Name)) {
		return own.suspicion()
	}
	for _, s := range all {
		there := c.engine.lookout(s.reference.GVK)
		if !there.inService || there.informer != nil && !sameObjects(s.objects, current(there.informer, s.reference)) {
			return there.suspicion()
		}
	}
	return nil
}

// isKnown says that an XR, nil if it is gone, is as its last run found it.
func (c *Controller) isKnown(name types.NamespacedName, obj *unstructured.Unstructured) bool {
	c.mu.Lock()
	r, ok := c.runs[name]
	if !ok || obj == nil {
		c.mu.Unlock()
		return !ok && obj == nil
	}
	uid, view := r.uid, r.view
	c.mu.Unlock()
	return uid == obj.GetUID() && view == xr.WakeHash(obj)
}

// lookout is what there is to read from of a kind.
type lookout struct {
	kind      schema.GroupVersionKind
	inService bool
	informer  *store.Informer // nil unless it may be read
	handled   string
}

func (e *Engine) lookout(gvk schema.GroupVersionKind) lookout {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := lookout{kind: gvk}
	w, ok := e.watches[gvk]
	if !ok {
		return out
	}
	out.inService, out.handled = true, w.lastHandled()
	if w.live {
		out.informer = w.informer
	}
	return out
}

func (l lookout) suspicion() *suspicion {
	s := &suspicion{kind: l.kind, handled: l.handled}
	if l.informer != nil {
		s.version = l.informer.Version()
	}
	return s
}

func current(informer *store.Informer, r dependency.Reference) []*unstructured.Unstructured {
	if r.Name == "" {
		return informer.List(r.Namespace, r.Labels)
	}
	if obj := informer.Get(r.Namespace, r.Name); obj != nil {
		return []*unstructured.Unstructured{obj}
	}
	return nil
}

// sameObjects compares as events do: a new resource version alone is no change.
func sameObjects(a, b []*unstructured.Unstructured) bool {
	return slices.EqualFunc(a, b, func(x, y *unstructured.Unstructured) bool { return x == y || !differ(x, y) })
}
