// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// patience is how long a run waits for a watch to sync before it gives its
// worker back.
const patience = time.Second

// Require records that the XR's function asks for what r refers to, puts the
// kind's watch into service, waits for its sync, a second at most, and returns
// what to read from. The error is a *WatchError, or the context's. The
// reference is recorded also when there is an error.
func (c *Controller) Require(ctx context.Context, xr types.NamespacedName, r dependency.Requirement) (*store.Informer, error) {
	return c.engine.record(ctx, c, xr, r.Reference.GVK, func() { c.tracker.Require(xr, r) })
}

// Depend is Require for a reference to something that the XR composes.
func (c *Controller) Depend(ctx context.Context, xr types.NamespacedName, composed dependency.Reference) (*store.Informer, error) {
	return c.engine.record(ctx, c, xr, composed.GVK, func() { c.tracker.Depend(xr, composed) })
}

// record makes the reference live and its kind's watch serve this controller
// under one hold of the lock that a sweep decides under. Only then is it
// waited for.
func (e *Engine) record(ctx context.Context, c *Controller, xr types.NamespacedName, gvk schema.GroupVersionKind, track func()) (*store.Informer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.runsLocked(c) {
		// A last run of a controller that was stopped must not put into service
		// what nobody would take out again.
		return nil, &WatchError{GVK: gvk, State: Failed, Message: errStopped.Error()}
	}
	track()
	w := e.serveLocked(gvk, c)
	return e.awaitLocked(ctx, w, waiter{c, xr})
}

// awaitLocked waits while the watch is Starting. That it gave up, and that the
// watch became live, are decided under the same lock: see activate. Engine.mu
// must be held; it is not while this waits.
func (e *Engine) awaitLocked(ctx context.Context, w *watch, x waiter) (*store.Informer, error) {
	if w.state == Starting {
		if err := e.whileStartingLocked(ctx, w, x); err != nil {
			return nil, err
		}
	}
	if w.live {
		return w.informer, nil
	}
	return nil, &WatchError{GVK: w.gvk, State: w.state, Message: w.message}
}

// whileStartingLocked returns when the watch is no longer Starting, or after
// patience. The error is the context's, of a watch that did not become live.
func (e *Engine) whileStartingLocked(ctx context.Context, w *watch, x waiter) error {
	enough := time.NewTimer(patience)
	defer enough.Stop()
	w.waiting[x]++
	defer func() {
		if w.waiting[x]--; w.waiting[x] == 0 {
			delete(w.waiting, x)
		}
	}()
	for waiting := true; waiting && w.state == Starting; {
		changed := w.changed
		e.mu.Unlock()
		select {
		case <-changed:
		case <-enough.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
		e.mu.Lock()
	}
	if w.live {
		return nil
	}
	return ctx.Err()
}
