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
const minPatience = time.Second

// A gate keeps a function that does not answer from holding every worker until
// the calls' deadlines, while XRs that don't need it wait for one.
//
// An answer is overdue if it takes twice as long as the slow ones before it, but
// minPatience at least, and no longer than half of the calls' deadline unless the
// slow ones took that. While as many calls
// as the limit are overdue, others are refused, but for one at a time that finds
// out whether the function is back, and for a few that wait a moment for that.
//
// They would come too late if all workers called in the moment in which the
// function begins to hang. So only as many calls as the limit may begin without an
// answer in between, and one more for each answer, up to three times the limit.
// Others wait for the next answer, no longer than it should take, unless the
// function is slow by nature and answers.
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
	slow    time.Duration // what the slowest answer of late took
	slowAt  time.Time     // when that was
	missing *fault        // what the last call ended with, if the function did not answer it
	probing bool          // whether a call is under way that was let in to find out
	waiting int           // how many calls wait to begin
	changed chan struct{} // closed, and replaced, when a call ends
}

// halfLife is after what time an answer that was slow counts for half of that.
const halfLife = time.Minute

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
	probe := false
	if len(g.passing) >= g.limit {
		patience := g.patience(now)
		left := g.passing[g.limit-1].began.Add(patience).Sub(now) // until the answers are overdue
		switch {
		case left > 0 && g.unproven(now):
			return g.waitLocked(min(left, came.Add(patience).Sub(now)))
		case left > 0:
		case !g.probing:
			probe = true
		case g.waiting < max(1, g.limit/2):
			return g.waitLocked(came.Add(minPatience).Sub(now))
		default:
			return nil, nil, 0
		}
	}
	g.begun++
	p = &passage{number: g.begun, began: now, probe: probe}
	g.passing = append(g.passing, p)
	g.probing = g.probing || probe
	return p, nil, 0
}

func (g *gate) waitLocked(wait time.Duration) (*passage, <-chan struct{}, time.Duration) {
	if wait <= 0 {
		return nil, nil, 0
	}
	g.waiting++
	return nil, g.changed, wait
}

func (g *gate) awake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
}

func (g *gate) patience(now time.Time) time.Duration {
	slow := g.slowness(now)
	return min(max(minPatience, 2*slow), max(g.deadline/2, slow+minPatience))
}

// slowness is what an answer may be expected to take.
func (g *gate) slowness(now time.Time) time.Duration {
	return g.slow >> min(now.Sub(g.slowAt)/halfLife, 62)
}

// unproven tells whether so many calls began since the last answer that others
// should wait for one, which doesn't take long of a function that is not slow, and
// may never come of one that does not answer.
func (g *gate) unproven(now time.Time) bool {
	most := g.limit + g.credit
	return len(g.passing) >= most && g.passing[len(g.passing)-most].number > g.settled &&
		(g.slowness(now) < minPatience || g.missing != nil)
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
		g.settled, g.credit, g.missing = g.begun, min(g.credit+1, 2*g.limit), nil
		if took := time.Since(p.began); took >= g.slowness(time.Now()) {
			g.slow, g.slowAt = took, time.Now()
		}
	case came.code != codes.Canceled:
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
