// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/breaker"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// A Circuit is how far an XR is slowed because it writes what somebody undoes.
type Circuit struct {
	// Open says that it is.
	Open bool
	// Loop is what for. It stays the same for as long as the circuit is open.
	breaker.Loop
	// Wait is how long the next run has to wait, if it isn't for what a user did.
	Wait time.Duration
}

// Circuit returns the XR's, as of the start of its last run.
func (c *Controller) Circuit(xr types.NamespacedName) Circuit {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.runs[xr]
	if !ok || !r.isOpen() {
		return Circuit{}
	}
	loop, _ := r.breaker.Open()
	return Circuit{Open: true, Loop: loop, Wait: r.breaker.Wait(time.Now())}
}

// Ran ends a run that was for that cause, and in which the XR wrote that, itself
// included. An XR whose circuit is open is sure to run once that may be closed, so
// that it says so.
func (c *Controller) Ran(xr types.NamespacedName, cause *Cause, wrote []dependency.Reference) {
	now := time.Now()
	c.mu.Lock()
	r, ok := c.runs[xr]
	if !ok {
		c.mu.Unlock()
		return
	}
	if cause.charges() && len(wrote) > 0 {
		c.chargeLocked(r, cause, wrote, now)
	}
	if !r.isOpen() {
		c.mu.Unlock()
		return
	}
	closes := r.breaker.Closes()
	c.mu.Unlock()
	c.addAfter(max(time.Millisecond, closes.Sub(now)), priorityResync, xr)
}

func (c *Controller) chargeLocked(r *run, cause *Cause, wrote []dependency.Reference, now time.Time) {
	if r.breaker == nil {
		r.breaker = breaker.New(c.engine.breaker)
	}
	rewrote := func(ref dependency.Reference) bool {
		return ref.GVK == cause.Kind && ref.Namespace == cause.Object.Namespace && ref.Name == cause.Object.Name
	}
	opened := r.breaker.Charge(now, breaker.Charge{
		Cause:        breaker.Object{Kind: cause.Kind, Name: cause.Object},
		Rewrote:      slices.ContainsFunc(wrote, rewrote),
		Dependencies: r.dependencies,
	})
	if opened {
		c.metrics.circuitOpenings.Inc()
		c.countOpenLocked(1)
	}
}

// startLocked notes that a run of the XR starts.
func (c *Controller) startLocked(r *run, now time.Time) {
	r.started = now
	if r.breaker != nil && r.breaker.Start(now) {
		c.countOpenLocked(-1)
	}
}

// countOpenLocked counts circuits that opened or, with a negative number, closed.
func (c *Controller) countOpenLocked(more int) {
	c.open += more
	c.metrics.circuitsOpen.Set(float64(c.open))
}

func (r *run) isOpen() bool {
	if r.breaker == nil {
		return false
	}
	_, open := r.breaker.Open()
	return open
}

// wait is how long the XR has to wait until it runs for that cause.
func (r *run) wait(cause *Cause, now time.Time) time.Duration {
	switch {
	case r.breaker == nil || cause.free:
		return 0
	case cause.byUser:
		return r.breaker.ShortWait(now)
	}
	return r.breaker.Wait(now)
}
