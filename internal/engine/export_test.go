// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// What tests of the order of runs compare.
const (
	PriorityResync  = priorityResync
	PriorityBacklog = priorityBacklog
)

var PriorityAfter = priorityAfter

// Pending are the XRs of a queue, and how each was asked to have its turn.
type Pending struct{ pending }

// NewPending returns those of an empty queue.
func NewPending() *Pending { return &Pending{pending{turns: map[types.NamespacedName]due{}}} }

// Ask says whether the queue is to be asked.
func (p *Pending) Ask(xr types.NamespacedName, at time.Time, priority int) bool {
	return len(p.ask(due{at: at, priority: priority}, []types.NamespacedName{xr})) > 0
}

// Begin begins the XR's run.
func (p *Pending) Begin(xr types.NamespacedName) { p.begin(xr) }

// Busy bounds how many XRs run at once that ran just before.
type Busy struct{ busy }

// NewBusy returns one for the processors that there are.
func NewBusy() Busy { return Busy{newBusy()} }

// Slots is how many that are.
func (b Busy) Slots() int { return cap(b.slots) }

// Taken is how many of them somebody has.
func (b Busy) Taken() int { return len(b.slots) }

// Enter waits until the run may go on.
func (b Busy) Enter(ctx context.Context) (leave func()) { return b.enter(ctx) }

// Courtesy is how long that takes at most.
const Courtesy = courtesy
