// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package breaker tells an XR that is in a loop from one that has much to do: a
// loop is an XR that writes, somebody who undoes or answers that, and the XR that
// is woken by it and writes again.
//
// A Breaker is a plain data structure, one an XR: it is told the time, and has no
// goroutine, timer, client or log. What drives it counts runs, never events: a run
// is charged if an event asked for it and it wrote. An object that changes twenty
// times a second costs nothing as long as nothing is written for it.
//
// Closed, a breaker is in nobody's way. Once its budget is spent it opens: then
// runs that events ask for have to wait for each other. None is dropped: whoever
// drives the breaker sees to it that what waits runs when the time has come.
//
// # The budget
//
// It must be so large that ordinary use is never slowed, and so small that a loop
// is slowed while it is still cheap.
//
//   - An XR that is composed for the first time is charged for few runs, however
//     many objects each of them creates.
//   - Each composed object that gets ready, or reports progress in a few steps, may
//     be shown in the XR's status, which is a charged run each. So the budget grows
//     by PerDependency, ten, with each object that the XR depends on.
//   - What a function decides anew whenever something changes, a scheduler under
//     load, writes as often as that does. One write in each Refill, a second, can
//     go on for ever, and Budget, a hundred, is for bursts. Beyond that answers
//     wait for a second at most, and each has the latest of everything: such an XR
//     writes another object than the one that woke it, and is never slowed further.
//
// # The pace of an open breaker
//
// It starts with a run a second, and that is where it stays unless the XR writes to
// the very object whose change woke it. That is a fight: its pauses double with each
// such run, up to LongestPause, since a fight may last for weeks, and a mistake in
// one Composition has a thousand XRs fight at once.
//
// # When it closes
//
// A charged run of an open breaker costs twice what comes back during the pause that
// the run earns, so that a loop keeps its breaker open at any pace, also if whoever
// is at the other end takes his time. Only what rewrites earns more than a Refill: an
// XR that has work to do recovers while it does that. The breaker closes when
// Recovery has come back. That is more than LongestPause, so that no loop is taken
// for ended only because it waits.
package breaker

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Settings of a breaker. Those of DefaultSettings are explained above. With the zero
// value a breaker never opens.
type Settings struct {
	// Budget is how many charged runs there may be at once.
	Budget int
	// PerDependency is how many more there may be for each object that the XR depends
	// on.
	PerDependency int
	// Refill is the time in which the budget for one run comes back. It is the first
	// pause of an open breaker, too.
	Refill time.Duration
	// LongestPause is the longest time between two runs of an open breaker.
	LongestPause time.Duration
	// Recovery is how much of the budget has to come back for an open breaker to
	// close, as the time in which it does. It is longer than LongestPause.
	Recovery time.Duration
}

// DefaultSettings returns the settings of an operator.
func DefaultSettings() Settings {
	return Settings{Budget: 100, PerDependency: 10, Refill: time.Second, LongestPause: 30 * time.Second, Recovery: time.Minute}
}

// An Object is one that can wake an XR.
type Object struct {
	Kind schema.GroupVersionKind
	Name types.NamespacedName
}

// A Loop is what an open breaker is open for.
type Loop struct {
	// Object is the one whose changes most of the charged runs answered.
	Object Object
	// Rewritten says that these runs wrote to that object.
	Rewritten bool
}

// A Charge is a run that wrote in answer to an event.
type Charge struct {
	// Cause is what the event was about.
	Cause Object
	// Rewrote says that the run wrote to that object.
	Rewrote bool
	// Dependencies is how many objects the XR depends on.
	Dependencies int
}

// Breaker is that of one XR. It is not safe for concurrent use, and times that it is
// told must not go back. Make one with New.
type Breaker struct {
	settings Settings

	// full is when the whole budget is there again if nothing is charged until then.
	full time.Time
	// budget is all of it, as the time in which it comes back.
	budget time.Duration

	open  bool
	pause time.Duration // between two runs, while open
	next  time.Time     // before which no event is answered, while open

	suspect suspect
	loop    Loop // while open
}

// New returns a closed breaker whose budget is untouched.
func New(settings Settings) *Breaker { return &Breaker{settings: settings} }

// Start notes that a run starts, and says whether the breaker closes with that.
func (b *Breaker) Start(now time.Time) (closed bool) {
	if !b.open {
		return false
	}
	if !now.Before(b.Closes()) {
		b.open, b.suspect = false, suspect{}
		return true
	}
	b.next = now.Add(b.pause)
	return false
}

// Charge notes that the run which started last wrote in answer to an event, and says
// whether the breaker opens with that.
func (b *Breaker) Charge(now time.Time, c Charge) (opened bool) {
	if !b.full.After(now) {
		b.full, b.suspect = now, suspect{} // what was long ago has nothing to do with this
	}
	b.budget = time.Duration(b.settings.Budget+c.Dependencies*b.settings.PerDependency) * b.settings.Refill
	b.suspect.vote(c, b.settings.Budget/2)
	if b.open {
		b.chargeOpen(now, c)
		return false
	}
	b.full = b.full.Add(b.settings.Refill)
	if b.full.Sub(now) <= b.budget {
		return false
	}
	b.full = now.Add(b.most())
	b.open, b.loop = true, b.suspect.Loop
	b.pause = b.settings.Refill
	b.next = now.Add(b.pause)
	return true
}

func (b *Breaker) chargeOpen(now time.Time, c Charge) {
	cost := 2 * b.settings.Refill
	if c.Rewrote {
		b.pause = max(b.settings.Refill, min(2*b.pause, b.settings.LongestPause))
		cost = 2 * b.pause
	}
	b.next = now.Add(b.pause)
	b.full = b.full.Add(cost)
	if most := now.Add(b.most()); b.full.After(most) {
		b.full = most
	}
}

// most is how much an XR can owe: its budget, or else as much as has to come back
// before the breaker closes.
func (b *Breaker) most() time.Duration { return max(b.budget, b.settings.Recovery) }

// Open returns what the breaker is open for, and whether it is open. It stays the
// same until the breaker closes.
func (b *Breaker) Open() (Loop, bool) { return b.loop, b.open }

// Closes returns when an open breaker may close, if nothing is charged until then.
func (b *Breaker) Closes() time.Time {
	return b.full.Add(-max(0, b.budget-b.settings.Recovery))
}

// Wait returns how long an event has to wait until it is answered: not at all if the
// breaker is closed.
func (b *Breaker) Wait(now time.Time) time.Duration {
	if !b.open {
		return 0
	}
	return max(0, b.next.Sub(now))
}

// ShortWait is Wait for what must not be slowed with a loop: it has to wait for no
// more than a Refill after the run before.
func (b *Breaker) ShortWait(now time.Time) time.Duration {
	return max(0, b.Wait(now)-max(0, b.pause-b.settings.Refill))
}

// suspect is whom the charged runs answer for the most part: a candidate that wins
// votes from those for it and loses them to all others, until another takes its
// place.
type suspect struct {
	Loop
	votes int
}

// vote counts one for the cause of a run. No lead is larger than the most, so that a
// new loop overcomes whatever was before it.
func (s *suspect) vote(c Charge, most int) {
	switch {
	case s.votes == 0:
		*s = suspect{Loop: Loop{Object: c.Cause, Rewritten: c.Rewrote}, votes: 1}
	case s.Object == c.Cause:
		s.Rewritten = c.Rewrote
		s.votes = min(s.votes+1, max(1, most))
	default:
		s.votes--
	}
}
