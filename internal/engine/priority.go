// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The order in which XRs run, if not all can at once: first those that something
// happened to.
const (
	priorityEvent   = 0
	priorityResync  = handler.LowPriority
	priorityBacklog = 2 * handler.LowPriority
)

// enqueueFor asks for a run of each XR because of an event. One whose circuit is
// open has to wait for its time: the queue keeps an XR once, and runs it as early as
// anybody asked for.
func (c *Controller) enqueueFor(cause *Cause, xrs []types.NamespacedName) {
	now := time.Now()
	atOnce := make([]types.NamespacedName, 0, len(xrs))
	var waits map[types.NamespacedName]time.Duration
	c.mu.Lock()
	for _, xr := range xrs {
		r, ok := c.runs[xr]
		if !ok {
			atOnce = append(atOnce, xr)
			continue
		}
		if wait := r.wait(cause, now); wait > 0 {
			if waits == nil {
				waits = map[types.NamespacedName]time.Duration{}
			}
			waits[xr] = wait
			continue
		}
		atOnce = append(atOnce, xr)
	}
	c.mu.Unlock()

	c.add(priorityEvent, atOnce...)
	for xr, wait := range waits {
		c.addAfter(wait, priorityEvent, xr)
	}
}

func (c *Controller) add(priority int, xrs ...types.NamespacedName) { c.addAfter(0, priority, xrs...) }

func (c *Controller) addAfter(after time.Duration, priority int, xrs ...types.NamespacedName) {
	select {
	case <-c.queueReady:
	default:
		return // whatever runs later reads what is there by then
	}
	requests := make([]reconcile.Request, 0, len(xrs))
	for _, xr := range xrs {
		c.sights.ask(xr)
		requests = append(requests, reconcile.Request{NamespacedName: xr})
	}
	c.queue.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: ptr.To(priority)}, requests...)
}
