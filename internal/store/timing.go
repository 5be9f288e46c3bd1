// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"time"
)

// Timing bounds the requests of informers. What is zero takes its default.
type Timing struct {
	// Watch is how long one watch lasts before the next takes its place, half of
	// that at least. API servers look at permissions only when a watch begins, so
	// it is also how long a revocation may go unnoticed. It counts whole seconds;
	// 10 minutes by default.
	Watch time.Duration
	// Answer is how long the API server may take to answer a watch, or to say which
	// kinds it serves; 30 seconds by default.
	Answer time.Duration
	// List is how long a whole list may take; by default, 75 seconds: API servers
	// give up after a minute.
	List time.Duration
	// Silence is how long a watch may send nothing before another takes its place;
	// 3 minutes by default: API servers send a bookmark about once a minute.
	Silence time.Duration
	// Poll is the least time between two lists of a kind that can't be watched; a
	// minute by default.
	Poll time.Duration
}

// OrDefaults returns the timing with defaults in place of zeros.
func (t Timing) OrDefaults() Timing {
	return Timing{
		Watch:   cmp.Or(t.Watch, 10*time.Minute),
		Answer:  cmp.Or(t.Answer, 30*time.Second),
		List:    cmp.Or(t.List, 75*time.Second),
		Silence: cmp.Or(t.Silence, 3*time.Minute),
		Poll:    cmp.Or(t.Poll, time.Minute),
	}
}
