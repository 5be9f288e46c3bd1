// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crosswatch-io/crosswatch/internal/store"
)

// steady is how long an attempt must have lasted for the next to follow at once:
// each time that a watch becomes live, it wakes all who refer to the kind.
const steady = 10 * time.Second

// runWatch keeps the kind watched until ctx ends, and tries again when it
// can't be.
func (e *Engine) runWatch(ctx context.Context, w *watch) {
	defer close(w.done)
	backoff := store.Backoff()
	for {
		begun := time.Now()
		err := e.serve(ctx, w)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > steady {
			backoff = store.Backoff()
		}
		w.log.V(1).Info("Watch failed", "error", err.Error())
		pause := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-w.kick:
			pause.Stop()
			backoff = store.Backoff()
		case <-pause.C:
		}
	}
}

// serve watches the kind once: from asking the API server what it is, to a
// failure that calls for starting over, or the end of ctx.
func (e *Engine) serve(ctx context.Context, w *watch) error {
	kind, err := e.resolve(ctx, w)
	if err == nil && !kind.Listable {
		err = errUnlistable
	}
	if err != nil {
		e.fail(ctx, w, w.gvk.Kind, err)
		return err
	}
	err = e.inform(ctx, w, kind)
	e.fail(ctx, w, kind.Resource.Resource, err)
	return err
}

// resolve asks the API server what the kind is, and gives up if that does not
// answer.
func (e *Engine) resolve(ctx context.Context, w *watch) (store.Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timing.Answer)
	defer cancel()
	return store.Resolve(ctx, e.discovery, w.gvk)
}

// inform runs an informer of the kind, and returns why it can't go on.
func (e *Engine) inform(ctx context.Context, w *watch, kind store.Kind) error {
	h := &failures{watch: w, ch: make(chan error, 1)}
	informer, err := store.Start(ctx, e.dynamic, kind, h, e.timing)
	if err != nil {
		return err
	}
	defer informer.Stop()

	for _, done := range []<-chan struct{}{informer.Synced(), informer.Watching()} {
		select {
		case <-done:
		case err := <-h.ch:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	e.activate(w, informer)
	return e.attend(ctx, w, informer, h.ch)
}

// looks is how often a live watch asks what its kind is when that may have
// changed: for about 20 seconds, since not all API servers of a cluster learn of
// it at once.
const looks = 8

// attend returns why the informer of a live watch has to be replaced, or when ctx
// ends. An informer outlives an API server that is away for a while; then its
// events come late, and none is lost. It can't outlive its kind or its
// permission, and one that gets no further while it fails is of no use.
func (e *Engine) attend(ctx context.Context, w *watch, informer *store.Informer, failed <-chan error) error {
	trouble := trouble{watch: w, informer: informer, tolerance: e.failureTolerance}
	pauses := store.Backoff()
	var look <-chan time.Time
	for {
		select {
		case err := <-failed:
			if trouble.isFinal(err, time.Now()) {
				return err
			}
		case <-w.kick:
			pauses = store.Backoff()
			pauses.Steps = looks
			look = time.After(0)
		case <-look:
			if kind, err := e.resolve(ctx, w); err == nil && kind != informer.Kind() {
				return errReplaced
			}
			look = nil
			if pauses.Steps > 0 {
				look = time.After(pauses.Step())
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// trouble is how a live informer does.
type trouble struct {
	watch     *watch
	informer  *store.Informer
	tolerance time.Duration

	since   time.Time // of the first failure after which the informer got no further
	version string    // of the informer then
}

// isFinal says whether the failure means that the informer is of no use.
func (t *trouble) isFinal(err error, now time.Time) bool {
	if version := t.informer.Version(); t.since.IsZero() || version != t.version {
		t.since, t.version = now, version
	}
	state, _ := classify(t.watch.gvk, t.informer.Kind().Resource.Resource, err)
	if state != Failed || now.Sub(t.since) > t.tolerance {
		return true
	}
	watchFailures.WithLabelValues(string(state)).Inc()
	return false
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

// fail takes note of why the kind is not watched, and has the XRs that refer to it
// say so.
func (e *Engine) fail(ctx context.Context, w *watch, resource string, err error) {
	if ctx.Err() != nil {
		return
	}
	state, message := classify(w.gvk, resource, err)
	if state != Starting {
		watchFailures.WithLabelValues(string(state)).Inc()
	}
	e.mu.Lock()
	if w.state == Stopping {
		e.mu.Unlock()
		return
	}
	w.live = false
	if state == Failed && w.state == Failed {
		message = w.message // one outage has many faces
	}
	changed := w.setLocked(state, message)
	waiters, users := w.waitersLocked(), *w.users.Load()
	e.mu.Unlock()

	if !changed || state == Starting {
		return
	}
	for _, c := range users {
		c.add(priorityResync, c.dependantsBut(w.gvk, waiters)...)
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
	w.informer, w.live = informer, true
	if informer.Kind().Watchable {
		w.setLocked(Active, "")
	} else {
		w.setLocked(Unwatchable, messagePolled)
	}
	waiters, users := w.waitersLocked(), *w.users.Load()
	e.mu.Unlock()

	for _, c := range users {
		if c.kind == w.gvk {
			c.enqueueAll(informer)
		}
		c.Enqueue(c.dependantsBut(w.gvk, waiters)...)
	}
}
