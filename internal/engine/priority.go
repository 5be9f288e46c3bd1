// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/bits"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// The order in which XRs run, if not all can at once: first those that something
// happened to, then those whose time has come, last all those that there are when a
// controller starts.
//
// Of those that something happened to, those first that have not run for the longest
// time: an event that wakes a thousand XRs, again and again, would else have every
// other XR wait behind all of them, each time. The order is by halves of a minute, each
// of which is a priority, and not by time, since the queue knows nothing but priorities.
// An XR that waits gets on: each event that finds it waiting finds it longer without a
// run. The more XRs an event wakes, the less their rest counts, so that whom few things
// concern does not wait for those that everything does. What a user does to an XR, and
// what else can't be its own doing, is first anyway.
const (
	priorityEvent   = 0
	priorityResync  = handler.LowPriority
	priorityBacklog = 2 * handler.LowPriority

	// priorityBusy is that of an XR that ran just before.
	priorityBusy = priorityEvent - halves

	// longRest is how long an XR must not have run to be among the first.
	longRest = time.Minute
	// halves is how many times longRest is halved: down to about 0.2 s.
	halves = 8
)

// priorityAfter returns the priority of an XR that last ran so long ago, and that is
// woken together with as many, itself included.
func priorityAfter(rest time.Duration, crowd int) int {
	rest /= time.Duration(bits.Len(uint(crowd)))
	below := 0
	for limit := longRest; rest < limit && below < halves; limit /= 2 {
		below++
	}
	return priorityEvent - below
}

// A turn is when XRs get theirs.
type turn struct {
	after    time.Duration
	priority int
}

// turnOfLocked is that of an XR that an event wakes, with the others of a crowd. One
// whose circuit is open has to wait for its time.
func (c *Controller) turnOfLocked(xr types.NamespacedName, cause *Cause, crowd int, now time.Time) turn {
	r, ok := c.runs[xr]
	if !ok {
		return turn{priority: priorityEvent}
	}
	t := turn{after: r.wait(cause, now), priority: priorityEvent}
	if !cause.free && !cause.byUser {
		t.priority = priorityAfter(now.Sub(r.started), crowd)
	}
	return t
}

// enqueueFor asks for a run of each XR because of an event. The queue keeps an XR
// once, and takes the earliest time and the highest priority that anybody asked for.
// It is not asked for what it knows.
func (c *Controller) enqueueFor(cause *Cause, xrs []types.NamespacedName) {
	now := time.Now()
	turns := map[turn][]types.NamespacedName{}
	c.mu.Lock()
	for _, xr := range xrs {
		t := c.turnOfLocked(xr, cause, len(xrs), now)
		turns[t] = append(turns[t], xr)
	}
	c.mu.Unlock()
	for t, xrs := range turns {
		c.addAfter(t.after, t.priority, xrs...)
	}
}

func (c *Controller) add(priority int, xrs ...types.NamespacedName) { c.addAfter(0, priority, xrs...) }

func (c *Controller) addAfter(after time.Duration, priority int, xrs ...types.NamespacedName) {
	select {
	case <-c.queueReady:
	default:
		return // whatever runs later reads what is there by then
	}
	news := c.pending.ask(due{at: time.Now().Add(after), priority: priority}, xrs)
	c.sights.ask(news)
	c.queue.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: ptr.To(priority)}, news...)
}
