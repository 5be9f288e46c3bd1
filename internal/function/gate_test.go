// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
)

const testLimit = 8

// unanswered is what a call comes to that runs into its deadline.
func unanswered() *fault {
	return &fault{code: codes.DeadlineExceeded, cause: "no answer within 20s", silent: true}
}

// passer makes calls through a gate, in the bubble of a test.
type passer struct {
	*gate

	calls   sync.WaitGroup
	let     atomic.Int64 // calls that came through the gate, so far
	refused atomic.Int64
	words   sync.Map // of refusals
}

// call takes that long and comes to that, if it is let in.
func (p *passer) call(t *testing.T, took time.Duration, came *fault) {
	p.calls.Go(func() {
		passage, flt := p.enter(t.Context())
		if flt != nil {
			p.refused.Add(1)
			p.words.Store(flt.cause, true)
			return
		}
		p.let.Add(1)
		<-time.After(took)
		p.leave(passage, came)
	})
}

func (p *passer) calling(t *testing.T, n int, took time.Duration, came *fault) {
	for range n {
		p.call(t, took, came)
	}
}

func (p *passer) expect(t *testing.T, when string, let, refused int64) {
	t.Helper()
	synctest.Wait()
	if p.let.Load() != let || p.refused.Load() != refused {
		t.Errorf("%s: %d calls were let in and %d refused, want %d and %d", when, p.let.Load(), p.refused.Load(), let, refused)
	}
}

func TestAGateOpensWithEachAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &passer{gate: newGate(testLimit)}
		p.calling(t, 32, 10*time.Millisecond, nil)
		p.expect(t, "before any answer", testLimit, 0)
		p.calls.Wait()
		p.expect(t, "at last", 32, 0)
		p.calling(t, 32, 10*time.Millisecond, nil)
		p.expect(t, "once it has answered many", 32+3*testLimit, 0)
		p.calls.Wait()
		p.expect(t, "at last", 64, 0)
	})
}

func TestAGateHoldsFewWorkersForAFunctionThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deadline = 20 * time.Second
		p := &passer{gate: newGate(testLimit)}
		p.calling(t, 40, deadline, unanswered())
		p.expect(t, "at first", testLimit, 0)
		<-time.After(minPatience)
		p.expect(t, "when answers are overdue, but for one that finds out", testLimit+1, 40-testLimit-1)
		p.calling(t, 10, deadline, unanswered())
		p.expect(t, "while it finds out", testLimit+1, 10+40-testLimit-1)

		p.calls.Wait()
		if _, ok := p.words.Load("8 calls wait for an answer of it that is overdue"); !ok {
			t.Error("nobody was told that there are calls without an answer")
		}
		p.words.Clear()
		p.calling(t, 40, deadline, unanswered())
		p.calls.Wait()
		p.words.Range(func(cause, _ any) bool {
			if cause != unanswered().cause {
				t.Errorf("a refused call says %q, other than those that had no answer", cause)
			}
			return true
		})

		p.let.Store(0)
		p.refused.Store(0)
		p.calling(t, 40, time.Millisecond, nil)
		p.calls.Wait()
		p.expect(t, "once it answers", 40, 0)
	})
}

func TestAGateLetsAFunctionBeSlowByNature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 10 * time.Second
		p := &passer{gate: newGate(testLimit)}
		p.calling(t, 1, took, nil)
		p.calls.Wait()
		for round := range int64(3) {
			p.calling(t, 32, took, nil)
			p.expect(t, "at once", 1+32*(round+1), 0)
			p.calls.Wait()
		}
	})
}

// XRs whose calls hang must not shut those out for which the function answers.
func TestAGateLetsOthersInOneByOneBesideCallsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &passer{gate: newGate(testLimit)}
		p.calling(t, testLimit, 20*time.Second, unanswered())
		<-time.After(minPatience)
		for i := range int64(5) {
			p.call(t, time.Millisecond, nil)
			<-time.After(time.Millisecond)
			p.expect(t, "one at a time", testLimit+i+1, 0)
		}
		p.calls.Wait()
	})
}

func TestAGateMakesNobodyWaitLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &passer{gate: newGate(1)}
		p.call(t, time.Minute, nil)
		synctest.Wait()
		began := time.Now()
		if passage, flt := p.enter(t.Context()); passage == nil || flt != nil || time.Since(began) != minPatience {
			t.Errorf("the next call waited %s and came to %v, want to find out after %s", time.Since(began), flt, minPatience)
		}
		p.calls.Wait()
	})
}
