// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"errors"
	"hash/fnv"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// catchUp is how long a run that found the XR changed under its hands leaves the
// informer to learn of that.
const catchUp = 100 * time.Millisecond

// shortest is how soon an XR is looked at again because a function or user asked
// for that: what they can ask for must not keep a worker busy.
const shortest = time.Second

// Whatever comes by the clock gives way to what events bring. When an answer
// expires comes before a resync: it may be another by then.
const (
	resyncPriority = handler.LowPriority
	expiryPriority = handler.LowPriority / 2
)

// requeue says when the XR is looked at again without any event. An error is
// tried again with growing delay; but not that of a watch, which wakes the XR
// when it is mended.
func (p *pass) requeue() (reconcile.Result, error) {
	switch {
	case p.err != nil && !isOnlyWatches(p.err):
		return reconcile.Result{}, p.err
	case p.outdated:
		return reconcile.Result{RequeueAfter: max(catchUp, p.session.Circuit(p.key).Wait)}, nil
	}
	now := p.config.Clock.Now()
	resync := untilResync(now, p.xr.GetUID(), p.config.SyncInterval)
	expiry := until(p.out.Expires, now)
	poll, _ := p.xr.PollInterval()
	out := reconcile.Result{RequeueAfter: soonest(expiry, atLeast(shortest, poll), resync)}
	if out.RequeueAfter == resync {
		out.Priority = ptr.To(resyncPriority)
	}
	if out.RequeueAfter == expiry {
		out.Priority = ptr.To(expiryPriority)
	}
	return out, nil
}

// unlessOutdated returns the error, but for a conflict over the XR itself, of
// which it takes note: that is no fault, and what comes next is another run. It
// is asked before the status is written. A conflict over a composed resource is
// an error of a run that got through.
func (p *pass) unlessOutdated(err error) error {
	if p.out.Complete || !apierrors.IsConflict(err) {
		return err
	}
	p.outdated = true
	return nil
}

// until returns the time left until an answer expires, and a moment if that is over
// already, or zero if it never does.
func until(expires, now time.Time) time.Duration {
	if expires.IsZero() {
		return 0
	}
	return max(shortest, expires.Sub(now))
}

// atLeast returns the duration or, if that is positive and shorter, the floor.
func atLeast(floor, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return max(floor, d)
}

// soonest returns the shortest of the durations that are positive, or zero.
func soonest(durations ...time.Duration) time.Duration {
	var out time.Duration
	for _, d := range durations {
		if d > 0 && (out == 0 || d < out) {
			out = d
		}
	}
	return out
}

// untilResync returns the time until the XR's next resync. Each XR has its own
// phase within the interval, for ever the same, so that they spread evenly.
func untilResync(now time.Time, uid types.UID, interval time.Duration) time.Duration {
	if interval <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	phase := time.Duration(h.Sum64() % uint64(interval))
	since := (time.Duration(now.UnixNano()) - phase) % interval
	if since < 0 {
		since += interval
	}
	return interval - since
}

// isWaiting reports whether a run ended because a watch is just starting.
func isWaiting(err error) bool {
	var watch *engine.WatchError
	return errors.As(err, &watch) && watch.Waiting()
}

// silence is for how long an XR may say nothing of runs that come to nothing.
const silence = time.Minute

// isTooEarlyToTell reports whether the run is to be tried again before anybody is
// told of it.
func (p *pass) isTooEarlyToTell() bool {
	now := p.config.Clock.Now()
	early := isEarly(p.err)
	since := p.memory.untold(p.key, early, now)
	return early && now.Sub(since) < silence
}

// isEarly reports whether a run ended because a function that others wait for was
// not called, which may be well.
func isEarly(err error) bool {
	var call *function.CallError
	return errors.As(err, &call) && call.Early
}

// isOnlyWatches reports whether each cause of an error is a watch.
func isOnlyWatches(err error) bool {
	switch e := err.(type) { //nolint:errorlint // walks the chain itself
	case *engine.WatchError:
		return true
	case interface{ Unwrap() error }:
		return e.Unwrap() != nil && isOnlyWatches(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			if !isOnlyWatches(cause) {
				return false
			}
		}
		return len(e.Unwrap()) > 0
	}
	return false
}

// isForbidden reports whether one of the causes of an error is that the operator may
// not do something.
func isForbidden(err error) bool {
	switch e := err.(type) { //nolint:errorlint // walks the chain itself
	case apierrors.APIStatus:
		return e.Status().Reason == metav1.StatusReasonForbidden
	case interface{ Unwrap() error }:
		return isForbidden(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), isForbidden)
	}
	return false
}
