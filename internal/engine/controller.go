// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crosswatch-io/crosswatch/internal/breaker"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/store"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// ControllerOptions say what an XR controller reconciles, and how.
type ControllerOptions struct {
	Kind                    schema.GroupVersionKind
	MaxConcurrentReconciles int
	// RateLimiter spaces the retries of runs that return an error.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Reconciler makes the reconciler, once, for the controller that it is
	// handed. That may be used when the reconciler is called, not earlier.
	Reconciler func(*Controller) reconcile.Reconciler
}

// Controller is the controller of one XR kind. Its methods may be called
// concurrently.
type Controller struct {
	name    string
	kind    schema.GroupVersionKind
	tracker *dependency.Tracker
	engine  *Engine
	log     logr.Logger

	cancel context.CancelFunc
	done   chan struct{}
	// stopping is true from when it was decided that the controller is to end.
	// Guarded by Engine.mu.
	stopping bool
	// queue may be used once queueReady is closed.
	queue      priorityqueue.PriorityQueue[reconcile.Request]
	queueReady chan struct{}

	metrics controllerMetrics
	causes  causes
	pending pending
	sights  *sights // nil unless the engine verifies
	refused refused

	mu   sync.Mutex
	runs map[types.NamespacedName]*run // guarded by mu
	// settled counts the runs of which settled is true, open those whose circuit is
	// open. Guarded by mu.
	settled, open int
}

// run is what is remembered of an XR between its runs.
type run struct {
	uid types.UID
	// view is the hash of what the last run started from; known is false from
	// before an XR is read until after, so that no event in between is judged
	// by an older view.
	view  uint64
	known bool
	// wrote is the resource version of our last write to the XR.
	wrote   string
	settled bool
	// started is when the last run did.
	started time.Time
	// breaker is nil until the XR is charged for the first time.
	breaker *breaker.Breaker
	// dependencies is how many references the last run that succeeded left.
	dependencies int
}

// newController returns a controller that has no tracker and no metrics until it
// is launched.
func newController(e *Engine, name string, kind schema.GroupVersionKind) *Controller {
	c := &Controller{
		name:       name,
		kind:       kind,
		engine:     e,
		log:        e.log.WithValues("controller", name),
		done:       make(chan struct{}),
		queueReady: make(chan struct{}),
		runs:       map[types.NamespacedName]*run{},
		pending:    pending{turns: map[types.NamespacedName]due{}},
	}
	if e.verifyInterval > 0 {
		c.sights = &sights{byXR: map[types.NamespacedName]*sight{}}
	}
	return c
}

// build makes the controller-runtime controller, whose queue the engine feeds.
func (c *Controller) build(o ControllerOptions) (func(context.Context) error, error) {
	var reconciler reconcile.Reconciler = beginner{o.Reconciler(c), &c.pending, c.engine.busy}
	if c.sights != nil {
		reconciler = seer{reconciler, c.sights}
	}
	inner, err := controller.NewUnmanaged(c.name, controller.Options{
		// A name comes back when its XRD does.
		SkipNameValidation:      ptr.To(true),
		MaxConcurrentReconciles: o.MaxConcurrentReconciles,
		RateLimiter:             o.RateLimiter,
		Reconciler:              reconciler,
		UsePriorityQueue:        ptr.To(true),
		RecoverPanic:            ptr.To(true),
		Logger:                  c.engine.log,
	})
	if err != nil {
		return nil, err
	}
	capture := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		c.queue = q.(priorityqueue.PriorityQueue[reconcile.Request])
		close(c.queueReady)
		return nil
	})
	if err := inner.Watch(capture); err != nil {
		return nil, err
	}
	return inner.Start, nil
}

// Name returns the name under which the controller was started.
func (c *Controller) Name() string { return c.name }

// Kind returns the kind of the XRs that the controller reconciles.
func (c *Controller) Kind() schema.GroupVersionKind { return c.kind }

// Tracker returns the record of what the XRs depend on.
func (c *Controller) Tracker() *dependency.Tracker { return c.tracker }

// Enqueue asks for a run of each XR, as an event does.
func (c *Controller) Enqueue(xrs ...types.NamespacedName) {
	c.add(priorityEvent, xrs...)
}

// enqueueAll asks for a run of every XR, behind whatever else is to run. Those that
// are remembered and gone are among them: their deletion may have been missed
// while nobody watched, and their own run is what forgets them.
func (c *Controller) enqueueAll(informer *store.Informer) {
	present := map[types.NamespacedName]types.UID{}
	for _, obj := range informer.List("", nil) {
		present[nameOf(obj)] = obj.GetUID()
	}
	for _, name := range c.unsettleOthers(present) {
		c.add(priorityBacklog, name)
	}
	for name := range present {
		c.add(priorityBacklog, name)
	}
}

// unsettleOthers takes back what is known of XRs other than those present, which
// are gone, and returns the names of these.
func (c *Controller) unsettleOthers(present map[types.NamespacedName]types.UID) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	var gone []types.NamespacedName
	for name, r := range c.runs {
		if present[name] == r.uid {
			continue
		}
		c.unsettleLocked(r)
		gone = append(gone, name)
	}
	return gone
}

// handOver returns what a controller that follows this one has to know of the
// XRs' runs: of which XR each record is, and what was written to it. What was
// seen and settled begins anew.
func (c *Controller) handOver() map[types.NamespacedName]*run {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[types.NamespacedName]*run, len(c.runs))
	for name, r := range c.runs {
		out[name] = &run{uid: r.uid, wrote: r.wrote}
	}
	return out
}

// onXR wakes an XR that was created, deleted, or differs from what its last run
// started from, and says whether it did. A write of our own is an event like any
// other: whether a function could see it is all that counts.
func (c *Controller) onXR(old, current *unstructured.Unstructured) bool {
	if current == nil {
		c.unsettle(nameOf(old))
		c.wake(causeOnXR(c.kind, old, nil), nameOf(old))
		return true
	}
	view := xr.WakeHash(current)
	c.mu.Lock()
	r, ok := c.runs[nameOf(current)]
	same := ok && r.known && r.uid == current.GetUID() && r.view == view
	c.mu.Unlock()
	if same {
		return false
	}
	c.wake(causeOnXR(c.kind, old, current), nameOf(current))
	return true
}

// onDependency wakes the XRs that refer to the object as it was or as it is: one
// that stops matching matters as much as one that starts. It says whether there
// are any, and returns found, whose memory it used for them. Comparing whole
// objects costs more than finding dependants, so it comes second.
func (c *Controller) onDependency(found []types.NamespacedName, gvk schema.GroupVersionKind, old, current *unstructured.Unstructured, differs func() bool) ([]types.NamespacedName, bool) {
	latest := cmp.Or(current, old)
	found = c.tracker.Dependants(found[:0], gvk, latest)
	if old != nil && old != latest && !sameLabels(old, latest) {
		// Some may be found twice; the queue holds an XR once.
		found = c.tracker.Dependants(found, gvk, old)
	}
	if len(found) == 0 || !differs() {
		return found, false
	}
	c.wake(causeOf(gvk, latest), found...)
	return found, true
}

// sameLabels compares without the copies that GetLabels makes.
func sameLabels(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(labelsOf(a), labelsOf(b))
}

func labelsOf(u *unstructured.Unstructured) any {
	labels, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "labels")
	return labels
}

// Informer returns what keeps the XRs, or nil until their watch was Active.
func (c *Controller) Informer() *store.Informer {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	if w, ok := c.engine.watches[c.kind]; ok {
		return w.informer
	}
	return nil
}

// XRs returns every XR of the kind. They are shared: never change them.
func (c *Controller) XRs() []*unstructured.Unstructured {
	informer := c.Informer()
	if informer == nil {
		return nil
	}
	return informer.List("", nil)
}

// Begin starts a run: it returns the XR, shared and not to be changed, or nil
// if there is none. With fresh false the informer is behind what the last run
// wrote; the run must end, and the event that brings the write starts another.
// An XR that took another's name starts with an empty record.
func (c *Controller) Begin(name types.NamespacedName) (obj *unstructured.Unstructured, fresh bool) {
	informer := c.Informer()
	if informer == nil {
		return nil, false
	}
	c.mu.Lock()
	if r, ok := c.runs[name]; ok {
		r.known = false
	}
	c.mu.Unlock()

	obj = informer.Get(name.Namespace, name.Name)
	if obj == nil {
		return nil, true
	}
	view := xr.WakeHash(obj)

	c.mu.Lock()
	r, ok := c.runs[name]
	if ok && r.uid != obj.GetUID() {
		c.dropLocked(name)
		ok = false
	}
	if !ok {
		r = &run{uid: obj.GetUID()}
		c.runs[name] = r
	}
	fresh = r.wrote == "" || !older(obj.GetResourceVersion(), r.wrote)
	if fresh {
		r.view, r.known = view, true
		c.startLocked(r, time.Now())
	}
	c.mu.Unlock()

	if !ok {
		c.tracker.Forget(name)
	}
	return obj, fresh
}

// older says that version a came before b. Versions that can't be compared
// are taken for current: the XR's next event sets things right.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// Wrote remembers the answer to a write of our own to an XR, so that no run
// starts from an older state.
func (c *Controller) Wrote(obj *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.runs[nameOf(obj)]; ok && r.uid == obj.GetUID() {
		r.wrote = obj.GetResourceVersion()
	}
}

// Requirements returns what the step required last time, to be seeded.
func (c *Controller) Requirements(name types.NamespacedName, step string) []dependency.Requirement {
	return c.tracker.Requirements(name, step)
}

// Track ends a run that succeeded: what it composed and required is the XR's
// record from now on.
func (c *Controller) Track(name types.NamespacedName, composed []dependency.Reference, required []dependency.Requirement) {
	c.tracker.Track(name, composed, required)
	c.sights.settle(name, composed, required)
	c.mu.Lock()
	if r, ok := c.runs[name]; ok {
		r.dependencies = len(composed) + len(required)
	}
	c.mu.Unlock()
	c.Settle(name)
}

// Fail ends a run that did not succeed: the record is that of the last success
// and of this run.
func (c *Controller) Fail(name types.NamespacedName) { c.tracker.Fail(name) }

// Forget drops everything known of an XR that is gone. Only the XR's own run
// may call it.
func (c *Controller) Forget(name types.NamespacedName) {
	c.mu.Lock()
	c.dropLocked(name)
	c.mu.Unlock()
	c.refused.drop(name)
	c.tracker.Forget(name)
	c.sights.forget(name)
}

func (c *Controller) dropLocked(name types.NamespacedName) {
	if r, ok := c.runs[name]; ok {
		c.unsettleLocked(r)
		if r.isOpen() {
			c.countOpenLocked(-1)
		}
	}
	delete(c.runs, name)
}

// Settle notes that what the XR depends on is known: it was tracked, or it has
// nothing to track, being paused, deleted or without a usable revision.
func (c *Controller) Settle(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.runs[name]; ok && !r.settled {
		r.settled = true
		c.settled++
	}
}

func (c *Controller) unsettle(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.runs[name]; ok {
		c.unsettleLocked(r)
	}
}

func (c *Controller) unsettleLocked(r *run) {
	if r.settled {
		r.settled = false
		c.settled--
	}
}

// Known returns how many XRs the informer holds, and of how many of them it is
// known what they depend on.
func (c *Controller) Known() (known, settled int) {
	if informer := c.Informer(); informer != nil {
		known = informer.Len()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return known, c.settled
}

func nameOf(obj *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
