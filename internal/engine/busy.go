// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"runtime"
	"time"
)

// courtesy is how long a run waits at most for others that are as busy. What waits for
// processors, and not for a function, is done by then.
const courtesy = 50 * time.Millisecond

// busy bounds how many XRs of all kinds run at once that ran just before: to as many as
// half of the processors serve. More of them would get little more done, and whoever is
// woken for the first time in a while would wait behind all of them at each step of its
// run.
type busy struct {
	slots chan struct{}
}

func newBusy() busy { return busy{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))} }

// enter waits until the run may go on. Whoever called it calls leave afterwards.
func (b busy) enter(ctx context.Context) (leave func()) {
	enough := time.NewTimer(courtesy)
	defer enough.Stop()
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }
	case <-enough.C:
	case <-ctx.Done():
	}
	return func() {}
}
