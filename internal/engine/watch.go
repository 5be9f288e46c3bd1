// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/store"
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
	// kick has the goroutine ask the API server about the kind at once.
	kick chan struct{}

	// users are the controllers that hear of the kind's events. Written under
	// Engine.mu, read by events without it: an event must never wait for a
	// lock that a sweep holds.
	users atomic.Pointer[[]*Controller]

	// found is OnEvent's memory. One informer at a time calls that, an event at a
	// time.
	found []types.NamespacedName
	// handled is the object of the last event that OnEvent got through.
	handled atomic.Pointer[unstructured.Unstructured]

	// All below is guarded by Engine.mu.
	state    State
	message  string
	informer *store.Informer // of the last time the watch was live
	live     bool            // the informer may be read: Active, or polled
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
		message: messageStarting,
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

// setLocked changes the state, tells those who wait, and says whether there is
// anything to tell. Engine.mu must be held.
func (w *watch) setLocked(s State, message string) bool {
	if w.state == s && w.message == message {
		return false
	}
	if w.state != s {
		w.log.Info("Watch changed state", "from", w.state, "to", s, "message", message)
		watchTransitions.WithLabelValues(string(s)).Inc()
	}
	w.state, w.message = s, message
	close(w.changed)
	w.changed = make(chan struct{})
	return true
}

// dependantsBut returns the XRs that refer to the kind, but those that wait.
func (c *Controller) dependantsBut(gvk schema.GroupVersionKind, waiters map[waiter]bool) []types.NamespacedName {
	all := c.tracker.DependantsOfKind(nil, gvk)
	return slices.DeleteFunc(all, func(xr types.NamespacedName) bool { return waiters[waiter{c, xr}] })
}

// waitersLocked returns those who wait: they learn of the state by themselves.
// Engine.mu must be held.
func (w *watch) waitersLocked() map[waiter]bool {
	waiters := make(map[waiter]bool, len(w.waiting))
	for x := range w.waiting {
		waiters[x] = true
	}
	return waiters
}

// concernsLocked says whether what is served of a CRD, named by its group and
// plural, may matter to the watch. As long as nothing serves the kind, nobody
// knows its plural. Engine.mu must be held.
func (w *watch) concernsLocked(crd schema.GroupResource) bool {
	return crd.Group == w.gvk.Group && (!w.live || w.informer.Kind().Resource.Resource == crd.Resource)
}

// lookNow has the goroutine ask the API server about the kind at once.
func (w *watch) lookNow() {
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
	w.handled.Store(cmp.Or(current, old))
}

// lastHandled is the resource version of the last event of which XRs were told.
func (w *watch) lastHandled() string {
	if obj := w.handled.Load(); obj != nil {
		return obj.GetResourceVersion()
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
