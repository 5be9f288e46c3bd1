// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// minPatience is how long an answer may take before it is missed, of a function
// that has not shown to be slow.
const minPatience = 2 * time.Second

// A gate keeps a function that does not answer from holding every worker until
// the calls' deadlines, while XRs that don't need it wait for one.
//
// An answer is overdue if it takes twice as long as the slowest before it, and
// minPatience at least. While as many as the limit are overdue, calls are refused
// at once, but for one at a time that finds out whether the function is back.
//
// They would come too late if all workers called in the moment in which the
// function begins to hang. So only as many calls as the limit may begin without an
// answer in between, and one more for each answer, up to three times the limit.
// Others wait for the next answer, unless the function is slow by nature.
//
// It is safe for concurrent use.
type gate struct {
	limit int

	mu      sync.Mutex    // guards what follows; not held while waiting
	passing []*passage    // the calls under way, in the order in which they began
	begun   int           // how many calls ever began
	settled int           // how many of them began before the last answer
	credit  int           // how many more may begin before the next, beyond the limit
	slowest time.Duration // answer since one was missing
	missing *fault        // what the last call ended with that had no answer
	probing bool          // whether a call is under way that was let in to find out
	changed chan struct{} // closed, and replaced, when a call ends
}

// A passage is one call's stay behind the gate.
type passage struct {
	number int
	began  time.Time
	probe  bool
}

func newGate(limit int) *gate {
	return &gate{limit: limit, changed: make(chan struct{})}
}

// enter lets a call begin, or says why it may not. Who enters must leave.
func (g *gate) enter(ctx context.Context) (*passage, *fault) {
	for {
		p, changed, wait := g.tryEnter(time.Now())
		switch {
		case p != nil:
			return p, nil
		case wait <= 0:
			return nil, g.refusal()
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil, g.refusal()
		}
	}
}

// tryEnter returns a passage, or else for what to wait and how long; not at all if
// there is nothing to wait for.
func (g *gate) tryEnter(now time.Time) (p *passage, changed <-chan struct{}, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	probe := false
	if len(g.passing) >= g.limit {
		left := g.passing[g.limit-1].began.Add(g.patience()).Sub(now)
		switch {
		case left > 0 && g.unproven():
			return nil, g.changed, left
		case left <= 0 && g.probing:
			return nil, nil, 0
		}
		probe = left <= 0
	}
	g.begun++
	p = &passage{number: g.begun, began: now, probe: probe}
	g.passing = append(g.passing, p)
	g.probing = g.probing || probe
	return p, nil, 0
}

func (g *gate) patience() time.Duration {
	return max(minPatience, 2*g.slowest)
}

// unproven tells whether so many calls began since the last answer that others
// should wait for one, which doesn't take long of a function that is not slow.
func (g *gate) unproven() bool {
	most := g.limit + g.credit
	return len(g.passing) >= most && g.passing[len(g.passing)-most].number > g.settled && g.slowest < minPatience
}

// leave ends a passage with what its call came to.
func (g *gate) leave(p *passage, came *fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.passing, p)
	g.passing = slices.Delete(g.passing, i, i+1)
	if p.probe {
		g.probing = false
	}
	if came != nil && came.silent {
		g.slowest, g.credit, g.missing = 0, 0, &fault{code: came.code, cause: came.cause}
	} else {
		g.settled, g.credit = g.begun, min(g.credit+1, 2*g.limit)
		g.slowest = max(g.slowest, time.Since(p.began))
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// refusal is worded as the calls are that had no answer, since it has the same
// cause: which of the two an XR meets must not show.
func (g *gate) refusal() *fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.missing != nil {
		return g.missing
	}
	return &fault{code: codes.Unavailable, cause: fmt.Sprintf("%d calls wait for an answer of it that is overdue", g.limit)}
}
