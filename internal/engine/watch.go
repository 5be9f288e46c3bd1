// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/crosswatch-io/crosswatch/internal/store"
)

// How a watch that failed is tried again: quickly at first, since a CRD is
// announced a moment before it is served, and then seldom, since each try is
// a request that may be refused again.
const (
	retryFirst  = 100 * time.Millisecond
	retryFactor = 2.0
	retryJitter = 0.2
	retryMost   = 10 * time.Second
)

// waiter is an XR whose run waits for a watch to sync.
type waiter struct {
	controller *Controller
	xr         types.NamespacedName
}

// watch is one kind's watch in service. Its goroutine is owned by the engine.
type watch struct {
	gvk    schema.GroupVersionKind
	log    logr.Logger
	cancel context.CancelFunc
	done   chan struct{}
	// kick cuts the pause before the next try short.
	kick chan struct{}

	// users are the controllers that hear of the kind's events. Written under
	// Engine.mu, read by events without it: an event must never wait for a
	// lock that a sweep holds.
	users atomic.Pointer[[]*Controller]

	// found is OnEvent's memory. One informer at a time calls that, an event at a
	// time.
	found []types.NamespacedName
	// handled is the resource version of the last event that OnEvent got through.
	handled atomic.Pointer[string]

	// All below is guarded by Engine.mu.
	state    State
	message  string
	informer *store.Informer // of the last time the watch was Active
	waiting  map[waiter]int
	changed  chan struct{} // closed and replaced when state changes
}

func newWatch(gvk schema.GroupVersionKind, log logr.Logger, cancel context.CancelFunc) *watch {
	w := &watch{
		gvk:     gvk,
		log:     log.WithValues("watch", gvk.String()),
		cancel:  cancel,
		done:    make(chan struct{}),
		kick:    make(chan struct{}, 1),
		state:   Starting,
		message: "the first list is not complete yet",
		waiting: map[waiter]int{},
		changed: make(chan struct{}),
	}
	w.users.Store(&[]*Controller{})
	return w
}

// addLocked registers the controller. Engine.mu must be held.
func (w *watch) addLocked(c *Controller) {
	users := *w.users.Load()
	if slices.Contains(users, c) {
		return
	}
	more := append(slices.Clone(users), c)
	w.users.Store(&more)
}

// keepLocked drops the controllers that keep says no to, and returns how many
// are left. Engine.mu must be held.
func (w *watch) keepLocked(keep func(*Controller) bool) int {
	users := slices.Clone(*w.users.Load())
	users = slices.DeleteFunc(users, func(c *Controller) bool { return !keep(c) })
	w.users.Store(&users)
	return len(users)
}

// setLocked changes the state and tells those who wait. Engine.mu must be held.
func (w *watch) setLocked(s State, message string) {
	if w.state == s && w.message == message {
		return
	}
	w.log.Info("Watch changed state", "from", w.state, "to", s, "message", message)
	w.state, w.message = s, message
	close(w.changed)
	w.changed = make(chan struct{})
}

// retryNow cuts the pause before the next try short, if there is one.
func (w *watch) retryNow() {
	select {
	case w.kick <- struct{}{}:
	default: // one is pending
	}
}

// OnEvent implements store.Handler: it wakes the XRs that refer to the object
// as it was or as it is, and the XR itself if the object is one.
func (w *watch) OnEvent(old, current *unstructured.Unstructured) {
	eventsReceived.Inc()
	differs := func() bool { return old == nil || current == nil || differ(old, current) }
	for _, c := range *w.users.Load() {
		woke := c.kind == w.gvk && c.onXR(old, current)
		var wokeOthers bool
		w.found, wokeOthers = c.onDependency(w.found, w.gvk, old, current, differs)
		if woke || wokeOthers {
			c.metrics.matched.Inc()
		}
	}
	if cap(w.found) > manyFound {
		w.found = nil
	}
	version := cmp.Or(current, old).GetResourceVersion()
	w.handled.Store(&version)
}

// lastHandled is the resource version of the last event of which XRs were told.
func (w *watch) lastHandled() string {
	if version := w.handled.Load(); version != nil {
		return *version
	}
	return ""
}

// manyFound is how many dependants are worth giving the memory back that they
// took.
const manyFound = 1024

// differ compares all of two versions of an object but the resource version.
// Of the managed fields the store keeps only our own, and those count: a
// takeover of a field that we applied is to be corrected.
func differ(a, b *unstructured.Unstructured) bool {
	return a.GetUID() != b.GetUID() || !reflect.DeepEqual(unversioned(a), unversioned(b))
}

func unversioned(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for k, v := range u.Object {
		out[k] = v
	}
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		m := make(map[string]any, len(metadata))
		for k, v := range metadata {
			if k != "resourceVersion" {
				m[k] = v
			}
		}
		out["metadata"] = m
	}
	return out
}

// runWatch keeps the kind watched until ctx ends, and tries again when it
// can't be.
func (e *Engine) runWatch(ctx context.Context, w *watch) {
	defer close(w.done)
	backoff := newBackoff()
	for {
		wasActive, err := e.serve(ctx, w)
		if ctx.Err() != nil {
			return
		}
		if wasActive {
			backoff = newBackoff()
		}
		w.log.V(1).Info("Watch failed", "error", err.Error())
		pause := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-w.kick:
			pause.Stop()
			backoff = newBackoff()
		case <-pause.C:
		}
	}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: retryFirst, Factor: retryFactor, Jitter: retryJitter, Cap: retryMost, Steps: 1 << 16}
}

// serve watches the kind once: from asking the API server what it is, to a
// failure that calls for starting over, or the end of ctx. It says whether the
// watch was Active meanwhile.
func (e *Engine) serve(ctx context.Context, w *watch) (wasActive bool, err error) {
	kind, err := store.Resolve(ctx, e.discovery, w.gvk)
	if err == nil && !kind.Watchable {
		err = errUnwatchable
	}
	if err != nil {
		e.fail(ctx, w, w.gvk.Kind, err)
		return false, err
	}

	h := &failures{watch: w, ch: make(chan error, 1)}
	informer, err := store.Start(ctx, e.dynamic, kind, h)
	if err != nil {
		e.fail(ctx, w, kind.Resource.Resource, err)
		return false, err
	}
	defer informer.Stop()

	select {
	case <-informer.Synced():
	case err := <-h.ch:
		e.fail(ctx, w, kind.Resource.Resource, err)
		return false, err
	case <-ctx.Done():
		return false, ctx.Err()
	}

	e.activate(w, informer)
	return true, e.attend(ctx, w, informer, h.ch)
}

// attend returns when the informer of an Active watch has to be replaced, which it
// says, or when ctx ends. An informer outlives an API server that is away for a
// while; then its events come late, and none is lost. It can't outlive its kind or
// its permission, and one that gets no further while it fails is of no use.
func (e *Engine) attend(ctx context.Context, w *watch, informer *store.Informer, failed <-chan error) error {
	resource := informer.Kind().Resource.Resource
	var since time.Time // of the first failure after which the informer got no further
	var version string
	for {
		select {
		case err := <-failed:
			now := time.Now()
			if since.IsZero() || informer.Version() != version {
				since, version = now, informer.Version()
			}
			state, _ := classify(w.gvk, resource, err)
			if state != Failed || now.Sub(since) > e.failureTolerance {
				e.fail(ctx, w, resource, err)
				return err
			}
			watchFailures.WithLabelValues(string(state)).Inc()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// failures passes the first unread failure of an informer on.
type failures struct {
	*watch
	ch chan error
}

func (f *failures) OnFailure(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the informer lists anew
	}
	select {
	case f.ch <- err:
	default: // one failure is enough to act on
	}
}

func (e *Engine) fail(ctx context.Context, w *watch, resource string, err error) {
	if ctx.Err() != nil {
		return
	}
	state, message := classify(w.gvk, resource, err)
	watchFailures.WithLabelValues(string(state)).Inc()
	e.mu.Lock()
	if w.state == Stopping {
		e.mu.Unlock()
		return
	}
	wasActive := w.state == Active
	w.setLocked(state, message)
	users := *w.users.Load()
	e.mu.Unlock()

	if !wasActive {
		return
	}
	// Those that relied on the watch are blind now, and have to say so.
	for _, c := range users {
		c.add(handler.LowPriority, c.tracker.DependantsOfKind(nil, w.gvk)...)
	}
}

// activate publishes a synced informer and wakes every XR that refers to the
// kind, but those that wait for it now: they read it next.
func (e *Engine) activate(w *watch, informer *store.Informer) {
	e.mu.Lock()
	if w.state == Stopping {
		e.mu.Unlock()
		return
	}
	w.informer = informer
	w.setLocked(Active, "")
	waiting := make(map[waiter]bool, len(w.waiting))
	for x := range w.waiting {
		waiting[x] = true
	}
	users := *w.users.Load()
	e.mu.Unlock()

	for _, c := range users {
		if c.kind == w.gvk {
			c.enqueueAll(informer)
		}
		for _, xr := range c.tracker.DependantsOfKind(nil, w.gvk) {
			if !waiting[waiter{c, xr}] {
				c.Enqueue(xr)
			}
		}
	}
}
