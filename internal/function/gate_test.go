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

const (
	testLimit    = 8
	testDeadline = 20 * time.Second
)

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
	early   atomic.Int64 // of the refused
	words   sync.Map     // of refusals
}

// call takes that long and comes to that, if it is let in.
func (p *passer) call(t *testing.T, took time.Duration, came *fault) {
	p.calls.Go(func() {
		passage, flt := p.enter(t.Context())
		if flt != nil {
			p.refused.Add(1)
			if flt.early {
				p.early.Add(1)
			}
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
		p := &passer{gate: newGate(testLimit, testDeadline)}
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
		p := &passer{gate: newGate(testLimit, testDeadline)}
		p.calling(t, 40, deadline, unanswered())
		p.expect(t, "at first", testLimit, 0)
		<-time.After(minPatience)
		p.expect(t, "when answers are overdue, but for one that finds out", testLimit+1, 40-testLimit-1)
		p.calling(t, 10, deadline, unanswered())
		p.expect(t, "while it finds out, and few wait for that", testLimit+1, 10-testLimit/2+40-testLimit-1)
		if p.early.Load() != p.refused.Load() {
			t.Error("before a call is without an answer, nobody can say that the function hangs")
		}
		<-time.After(minPatience)
		p.expect(t, "when they waited long enough", testLimit+1, 10+40-testLimit-1)

		p.calls.Wait()
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
		p := &passer{gate: newGate(testLimit, testDeadline)}
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
		p := &passer{gate: newGate(testLimit, testDeadline)}
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
		p := &passer{gate: newGate(1, testDeadline)}
		p.call(t, time.Minute, nil)
		synctest.Wait()
		began := time.Now()
		if passage, flt := p.enter(t.Context()); passage == nil || flt != nil || time.Since(began) != minPatience {
			t.Errorf("the next call waited %s and came to %v, want to find out after %s", time.Since(began), flt, minPatience)
		}
		p.calls.Wait()
	})
}

// Before anything is known of a function, one that is slow can't be told from one
// that hangs. Who is refused then is to try again, and nobody is told.
func TestAGateRefusesNobodyForGoodBecauseAFunctionIsSlowAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 4 * time.Second
		p := &passer{gate: newGate(testLimit, testDeadline)}
		for range 3 {
			p.calling(t, 32, took, nil)
			p.calls.Wait()
			if p.early.Load() != p.refused.Load() {
				t.Errorf("%d calls are refused for good", p.refused.Load()-p.early.Load())
			}
		}
		p.refused.Store(0)
		p.calling(t, 32, took, nil)
		p.calls.Wait()
		if n := p.refused.Load(); n != 0 {
			t.Errorf("%d calls are refused although it is known by now how slow it is", n)
		}
	})
}

// What made a gate patient once does not for ever.
func TestAGateForgetsThatAFunctionWasSlow(t *testing.T) {
	cases := map[string]struct {
		first *fault
		after time.Duration
	}{
		"AColdStart":                {after: 5 * halfLife},
		"AConnectionThatBrokeLate":  {first: &fault{code: codes.Unavailable}},
		"ACallThatSomebodyGaveUpOn": {first: &fault{code: codes.Canceled}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &passer{gate: newGate(testLimit, testDeadline)}
				p.calling(t, 1, 11*time.Second, tc.first)
				p.calls.Wait()
				<-time.After(tc.after)
				p.calling(t, 1, time.Millisecond, nil)
				p.calls.Wait()
				p.let.Store(0)
				p.calling(t, 40, testDeadline, unanswered())
				<-time.After(minPatience)
				synctest.Wait()
				if n := p.let.Load(); n > 3*testLimit+1 {
					t.Errorf("%d calls hang", n)
				}
				p.calls.Wait()
			})
		})
	}
}

// One call without an answer does not make a slow function one that hangs.
func TestAGateIsPatientAfterOneCallWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 5 * time.Second
		p := &passer{gate: newGate(testLimit, testDeadline)}
		p.calling(t, 1, took, nil)
		p.calls.Wait()
		p.calling(t, 1, testDeadline, unanswered())
		p.calls.Wait()
		for range 3 {
			p.calling(t, 32, took, nil)
			p.calls.Wait()
		}
		p.expect(t, "at last", 2+3*32, 0)
	})
}

// An answer ends what was said while there was none.
func TestAGateForgetsWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &passer{gate: newGate(1, testDeadline)}
		p.calling(t, 1, testDeadline, unanswered())
		p.calls.Wait()
		p.calling(t, 1, time.Millisecond, &fault{code: codes.Unknown, cause: "no", answered: true})
		p.calls.Wait()
		if flt := p.refusal(); !flt.early {
			t.Errorf("the gate still says %q", flt.cause)
		}
	})
}

func TestAVersionHasAGateOfItsOwn(t *testing.T) {
	i := newInstalled()
	c := connect(t, i, nil)
	at := target{endpoint: "dns:///f.ns:9443", version: "one"}
	gate := func(at target) *gate {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.gateLocked("f", at)
	}
	first := gate(at)
	c.Forget("f")
	if gate(at) != first {
		t.Error("a new connection forgets what hangs")
	}
	at.version = "two"
	second := gate(at)
	if second == first {
		t.Error("a new version is judged by the calls of the one before")
	}
	at.endpoint = "dns:///elsewhere:9443"
	if gate(at) == second {
		t.Error("a server is judged by the calls of another")
	}
	c.Remove("f")
	if len(c.gates) != 0 {
		t.Error("the gate of a function that is gone stays")
	}
}

// That a function was slow does not let wave after wave in once it hangs.
func TestAGateHoldsFewWorkersForASlowFunctionThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &passer{gate: newGate(testLimit, testDeadline)}
		p.calling(t, 1, 3*time.Second, nil)
		p.calls.Wait()
		p.calling(t, 40, testDeadline, unanswered())
		p.calls.Wait()
		for range 3 {
			p.let.Store(0)
			p.calling(t, 40, testDeadline, unanswered())
			p.calls.Wait()
			if n := p.let.Load(); n > testLimit+1 {
				t.Errorf("%d calls hang although it is known that the function does", n)
			}
		}
	})
}

// A function that takes more than half of the deadline by nature is called by all.
func TestAGateLetsAFunctionTakeMostOfTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = testDeadline * 2 / 3
		p := &passer{gate: newGate(testLimit, testDeadline)}
		p.calling(t, 1, took, nil)
		p.calls.Wait()
		for range 3 {
			p.calling(t, 32, took, nil)
			p.calls.Wait()
		}
		p.expect(t, "at last", 1+3*32, 0)
	})
}

// However calls come to nothing, once they did it is said of refused ones, too.
func TestAGateTellsWhatCallsComeToThatHaveNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &fault{code: codes.Unavailable, cause: "the connection broke during the call: did the function crash?"}
		p := &passer{gate: newGate(testLimit, testDeadline)}
		p.calling(t, 20, 8*time.Second, broken)
		p.calls.Wait()
		p.refused.Store(0)
		p.early.Store(0)
		p.calling(t, 40, 8*time.Second, broken)
		p.calls.Wait()
		if p.refused.Load() == 0 || p.early.Load() != 0 {
			t.Errorf("of %d refused calls nothing is told of %d", p.refused.Load(), p.early.Load())
		}
	})
}

// One in ten answers takes long, and nobody is refused for that.
func TestAGateKnowsThatSomeAnswersAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &passer{gate: newGate(testLimit, testDeadline)}
		p.calling(t, 1, 6*time.Second, nil)
		p.calls.Wait()
		for i := range 1000 {
			took := time.Millisecond
			if i%10 == 0 {
				took = 6 * time.Second
			}
			p.call(t, took, nil)
			<-time.After(20 * time.Millisecond)
		}
		p.calls.Wait()
		p.expect(t, "at last", 1001, 0)
	})
}
