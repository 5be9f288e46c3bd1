// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// jumpingClock is a wall clock that somebody sets. Timers go on as they do on a
// machine whose clock is set.
type jumpingClock struct {
	clock.RealClock

	ahead atomic.Int64 // nanoseconds
}

// jump sets the clock by that much ahead of what it shows, or behind.
func (c *jumpingClock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

// Now implements clock.PassiveClock.
func (c *jumpingClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Since implements clock.PassiveClock.
func (c *jumpingClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
