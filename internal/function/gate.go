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
// An answer is overdue if it takes twice as long as the slow ones before it, but
// minPatience at least and half of the calls' deadline at most. While as many calls
// as the limit are overdue, others are refused, but for one at a time that finds
// out whether the function is back, and for a few that wait a moment for that.
//
// They would come too late if all workers called in the moment in which the
// function begins to hang. So only as many calls as the limit may begin without an
// answer in between, and one more for each answer, up to three times the limit.
// Others wait for the next answer, unless the function is slow by nature.
//
// It is safe for concurrent use.
type gate struct {
	limit    int
	deadline time.Duration // of calls

	mu      sync.Mutex    // guards what follows; not held while waiting
	passing []*passage    // the calls under way, in the order in which they began
	begun   int           // how many calls ever began
	settled int           // how many of them began before the last answer
	credit  int           // how many more may begin before the next, beyond the limit
	slow    time.Duration // what the slow answers of late took
	missing *fault        // what the last call ended with, if it had no answer
	probing bool          // whether a call is under way that was let in to find out
	waiting int           // how many calls wait to begin
	changed chan struct{} // closed, and replaced, when a call ends
}

// forgetting is the share of slow that each faster answer takes away.
const forgetting = 16

// A passage is one call's stay behind the gate.
type passage struct {
	number int
	began  time.Time
	probe  bool
}

func newGate(limit int, deadline time.Duration) *gate {
	return &gate{limit: limit, deadline: deadline, changed: make(chan struct{})}
}

// enter lets a call begin, or says why it may not. Who enters must leave.
func (g *gate) enter(ctx context.Context) (*passage, *fault) {
	came := time.Now()
	for {
		p, changed, wait := g.tryEnter(came)
		switch {
		case p != nil:
			return p, nil
		case changed == nil:
			return nil, g.refusal()
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		g.awake()
		if ctx.Err() != nil {
			return nil, g.refusal()
		}
	}
}

// tryEnter returns a passage, or else for what to wait and how long: nil if there is
// nothing to wait for. Who is told to wait must say when he is awake.
func (g *gate) tryEnter(came time.Time) (p *passage, changed <-chan struct{}, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	overdue := false
	if len(g.passing) >= g.limit {
		left := g.passing[g.limit-1].began.Add(g.patience()).Sub(now)
		overdue = left <= 0
		switch {
		case !overdue && g.unproven():
			wait = left
		case overdue && g.probing && g.waiting < max(1, g.limit/2):
			wait = came.Add(minPatience).Sub(now)
		}
		if wait > 0 {
			g.waiting++
			return nil, g.changed, wait
		}
		if overdue && g.probing {
			return nil, nil, 0
		}
	}
	g.begun++
	p = &passage{number: g.begun, began: now, probe: overdue}
	g.passing = append(g.passing, p)
	g.probing = g.probing || overdue
	return p, nil, 0
}

func (g *gate) awake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
}

func (g *gate) patience() time.Duration {
	return min(max(minPatience, 2*g.slow), g.deadline/2)
}

// unproven tells whether so many calls began since the last answer that others
// should wait for one, which doesn't take long of a function that is not slow.
func (g *gate) unproven() bool {
	most := g.limit + g.credit
	return len(g.passing) >= most && g.passing[len(g.passing)-most].number > g.settled && g.slow < minPatience
}

// leave ends a passage with what its call came to. Only what the function itself
// said is an answer: a connection that breaks says nothing of how slow it is.
func (g *gate) leave(p *passage, came *fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.passing, p)
	g.passing = slices.Delete(g.passing, i, i+1)
	if p.probe {
		g.probing = false
	}
	switch {
	case came == nil || came.answered:
		g.settled, g.credit = g.begun, min(g.credit+1, 2*g.limit)
		g.slow = max(g.slow-g.slow/forgetting, time.Since(p.began))
		g.missing = nil
	case came.silent:
		g.credit, g.missing = 0, came
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// refusal is worded as the calls are that had no answer, since it has the same
// cause: which of the two an XR meets must not show. Before there is one, nobody
// can tell whether the function hangs or is slow.
func (g *gate) refusal() *fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.missing != nil {
		return &fault{code: g.missing.code, cause: g.missing.cause}
	}
	return &fault{
		code:  codes.DeadlineExceeded,
		cause: fmt.Sprintf("%d calls wait for an answer of it that is overdue", g.limit),
		early: true,
	}
}
