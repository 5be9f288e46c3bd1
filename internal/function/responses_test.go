// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// A keeper runs a function whose answers may be kept, at a time of the test's own.
type keeper struct {
	*Runner

	clock *clocktesting.FakePassiveClock
	fn    *script
	known *installed
}

func newKeeper(t *testing.T, answer body) *keeper {
	t.Helper()
	k := &keeper{
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)),
		fn:    &script{body: answer},
		known: newInstalled(),
	}
	k.known.revise("f", 1, "dns:///f.ns:9443")
	k.Runner = newRunner(t, k.fn)
	responses, err := NewResponses(ResponsesConfig{Bytes: DefaultResponsesBytes, Clock: k.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(responses.Close)
	k.config.Responses, k.config.Clock, k.config.Functions = responses, k.clock, k.known
	return k
}

func (k *keeper) pass(d time.Duration) { k.clock.SetTime(k.clock.Now().Add(d)) }

func (k *keeper) run(t *testing.T, in *cluster) *Answer {
	t.Helper()
	answer, err := k.Run(t.Context(), step(in))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func (k *keeper) calls() int { return len(k.fn.requests) }

// says answers with a TTL, and what else the requirements say.
func says(ttl time.Duration, r *fnv1.Requirements) body {
	return func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Ttl: durationpb.New(ttl)}, Requirements: r}, nil
	}
}

// C1: an answer that still asks for something is not kept, so the function sees
// what it asked for in the first run and in each later one.
func TestC1AnUnsatisfiedAnswerIsNotKept(t *testing.T) {
	want := resources(map[string]*fnv1.ResourceSelector{"it": byName("ns", "a")})
	k := newKeeper(t, func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		found := len(req.GetRequiredResources()["it"].GetItems())
		return &fnv1.RunFunctionResponse{
			Meta:         &fnv1.ResponseMeta{Ttl: durationpb.New(time.Hour)},
			Requirements: want,
			Context:      &structpb.Struct{Fields: map[string]*structpb.Value{"found": structpb.NewNumberValue(float64(found))}},
		}, nil
	})
	in := newCluster(configMap("ns", "a", nil))
	found := func(a *Answer) float64 { return a.Response.GetContext().GetFields()["found"].GetNumberValue() }

	for run := range 3 {
		// A record that was lost has the function asked without seeds again.
		if a := k.run(t, in); found(a) != 1 {
			t.Errorf("in run %d the answer rests on %v objects, want 1", run, found(a))
		}
	}
}

// C3: a function is called once in each TTL, at its very end, and never later.
func TestC3AFunctionIsCalledOnceInEachTTL(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 61 * time.Second, 90 * time.Minute} {
		t.Run(ttl.String(), func(t *testing.T) {
			const ttls = 10
			k := newKeeper(t, says(ttl, nil))
			in := newCluster()
			begin := k.clock.Now()
			for k.clock.Now().Before(begin.Add(ttls * ttl)) {
				answer := k.run(t, in)
				left := answer.Expires.Sub(k.clock.Now())
				if left <= 0 || left > ttl {
					t.Fatalf("%s after the beginning an answer was good for another %s", k.clock.Now().Sub(begin), left)
				}
				// An event comes in the meantime; else the next run is at the deadline.
				k.pass(left / 2)
				k.run(t, in)
				k.pass(answer.Expires.Sub(k.clock.Now()))
			}
			if k.calls() != ttls {
				t.Errorf("%d calls in %d TTLs, want one in each", k.calls(), ttls)
			}
		})
	}
}

func TestWhatIsNotKept(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer body
		change func(*keeper)
		fails  bool
	}{
		"ZeroTTL": {
			reason: "the function wants to be asked each time",
			answer: says(0, nil),
		},
		"Fatal": {
			reason: "a function that gives up is asked again",
			answer: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL}}}, nil
			},
		},
		"Error": {
			reason: "there is no answer to keep",
			answer: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return nil, errors.New("no")
			},
			fails: true,
		},
		"CacheOff": {
			reason: "the Function says so",
			answer: says(time.Hour, nil),
			change: func(k *keeper) {
				k.known.functions["f"].Annotations = map[string]string{pkgv1.AnnotationFunctionCache: pkgv1.FunctionCacheOff}
			},
		},
		"Development": {
			reason: "whoever develops a function wants to see what it says now",
			answer: says(time.Hour, nil),
			change: func(k *keeper) { k.known.development("f", "localhost:1") },
		},
		"OtherRevision": {
			reason: "another revision may answer otherwise",
			answer: says(time.Hour, nil),
			change: func(k *keeper) {
				k.fn.body = func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					n := int64(len(k.fn.requests) + 1)
					k.known.revise("f", n, "dns:///f.ns:9443")
					k.known.revisions[fmt.Sprintf("f-%d", n)].Spec.Image = strconv.FormatInt(n, 10)
					return says(time.Hour, nil)(ctx, req)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, tc.answer)
			if tc.change != nil {
				tc.change(k)
			}
			for range 3 {
				if _, err := k.Run(t.Context(), step(newCluster())); (err != nil) != tc.fails {
					t.Fatalf("error %v", err)
				}
			}
			if k.calls() != 3 {
				t.Errorf("%s, but 3 runs made %d calls", tc.reason, k.calls())
			}
		})
	}
}

// The answer of a pure function is the same with and without what is kept, and
// that of any function is no older than its TTL.
func TestWhatIsKeptIsWhatTheFunctionWouldSay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		called := map[float64]time.Time{}
		var k *keeper
		k = newKeeper(t, func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
			in := req.GetInput().GetFields()["n"].GetNumberValue()
			call := float64(len(called))
			called[call] = k.clock.Now()
			return &fnv1.RunFunctionResponse{
				Meta: &fnv1.ResponseMeta{Ttl: durationpb.New(time.Duration(in) * time.Second)},
				Context: &structpb.Struct{Fields: map[string]*structpb.Value{
					"square": structpb.NewNumberValue(in * in),
					"call":   structpb.NewNumberValue(call),
				}},
			}, nil
		})
		rt.Repeat(map[string]func(*rapid.T){
			"Pass": func(rt *rapid.T) {
				k.pass(time.Duration(rapid.IntRange(1, 5000).Draw(rt, "ms")) * time.Millisecond)
			},
			"Run": func(rt *rapid.T) {
				n := float64(rapid.IntRange(0, 5).Draw(rt, "n"))
				s := step(newCluster())
				s.Request = &fnv1.RunFunctionRequest{Input: &structpb.Struct{Fields: map[string]*structpb.Value{"n": structpb.NewNumberValue(n)}}}
				answer, err := k.Run(t.Context(), s)
				if err != nil {
					rt.Fatal(err)
				}
				said := answer.Response.GetContext().GetFields()
				if got := said["square"].GetNumberValue(); math.Abs(got-n*n) > 0 {
					rt.Fatalf("the answer to %v is %v", n, got)
				}
				if age := k.clock.Now().Sub(called[said["call"].GetNumberValue()]); age > 0 && age >= time.Duration(n)*time.Second {
					rt.Fatalf("an answer with a TTL of %v s was given %s after its call", n, age)
				}
			},
		})
	})
}

func TestResponsesAreBoundedInBytes(t *testing.T) {
	const bytes = 1 << 20
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r, err := NewResponses(ResponsesConfig{Bytes: bytes, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	answer := answered{Response: &Response{encoded: make([]byte, 10_000)}, expires: clock.Now().Add(time.Hour)}
	for i := range 1000 {
		r.put(responseKey{function: "f", tag: strconv.Itoa(i)}, answer)
	}
	r.kept.CleanUp()
	if kept := r.kept.WeightedSize(); kept > bytes || kept < bytes/2 {
		t.Errorf("%d bytes are kept, want nearly %d", kept, bytes)
	}
}

// What was asked of a function before is forgotten, even if the answer comes later.
func TestAForgottenAnswerIsNotGivenAgain(t *testing.T) {
	for name, during := range map[string]bool{"Before": false, "DuringTheCall": true} {
		t.Run(name, func(t *testing.T) {
			var k *keeper
			k = newKeeper(t, func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				if during && len(k.fn.requests) == 1 {
					k.config.Responses.Forget("f")
				}
				return says(time.Hour, nil)(ctx, req)
			})
			k.run(t, newCluster())
			if !during {
				k.config.Responses.Forget("f")
			}
			k.config.Responses.Forget("g")
			for range 2 {
				k.run(t, newCluster())
			}
			if k.calls() != 2 {
				t.Errorf("%d calls, want one before and one after", k.calls())
			}
		})
	}
}

// An answer that comes while one revision takes over from another may be that of
// either.
func TestAnAnswerDuringAnUpgradeIsNotKept(t *testing.T) {
	var k *keeper
	k = newKeeper(t, func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		if len(k.fn.requests) == 1 {
			k.known.revise("f", 2, "dns:///f.ns:9443")
			k.known.revisions["f-2"].UID = "another"
		}
		return says(time.Hour, nil)(ctx, req)
	})
	k.run(t, newCluster())
	delete(k.known.revisions, "f-2") // back to what it was before
	k.run(t, newCluster())
	if k.calls() != 2 {
		t.Errorf("%d calls, want another after the upgrade was taken back", k.calls())
	}
}

// How a TTL is read is what the Function says now.
func TestAnAnswerIsReadAnewWhenItsTTLIs(t *testing.T) {
	k := newKeeper(t, says(sdkTTL, nil))
	k.run(t, newCluster())
	k.known.functions["f"].Annotations = map[string]string{pkgv1.AnnotationResponseTTL: pkgv1.ResponseTTLAsReturned}
	if left := k.run(t, newCluster()).Expires.Sub(k.clock.Now()); left != sdkTTL {
		t.Errorf("the answer is good for %s, want %s", left, sdkTTL)
	}
}

// Turned off and on again, the cache does not go back to what was said before.
func TestTheCacheTurnedOffForgets(t *testing.T) {
	k := newKeeper(t, says(time.Hour, nil))
	k.run(t, newCluster())
	k.known.functions["f"].Annotations = map[string]string{pkgv1.AnnotationFunctionCache: pkgv1.FunctionCacheOff}
	k.run(t, newCluster())
	k.known.functions["f"].Annotations = nil
	k.run(t, newCluster())
	if k.calls() != 3 {
		t.Errorf("%d calls in 3 runs, of which the second was without the cache", k.calls())
	}
}

// Where two versions have the same address, the older may answer for a while. What
// is kept then is asked again soon after.
func TestWhatMayBeAnotherVersionsAnswerIsAskedAgain(t *testing.T) {
	cases := map[string]struct {
		endpoint string
		want     time.Duration // for which the answer is good
	}{
		"SameAddress":    {endpoint: "dns:///f.ns:9443", want: takeoverTime},
		"AnotherAddress": {endpoint: "dns:///f-2.ns:9443", want: time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t, says(time.Hour, nil))
			if left := k.run(t, newCluster()).Expires.Sub(k.clock.Now()); left != time.Hour {
				t.Errorf("the first version's answer is good for %s, want its TTL", left)
			}
			k.known.revise("f", 2, tc.endpoint)
			k.known.revisions["f-2"].UID = "another"
			if left := k.run(t, newCluster()).Expires.Sub(k.clock.Now()); left != tc.want {
				t.Errorf("the answer is good for %s, want %s", left, tc.want)
			}
			k.pass(tc.want)
			if left := k.run(t, newCluster()).Expires.Sub(k.clock.Now()); left != time.Hour || k.calls() != 3 {
				t.Errorf("after %d calls the answer is good for %s, want a third, and its TTL", k.calls(), left)
			}
		})
	}
}

// A takeover may have begun while nobody looked, as before the operator started.
func TestAVersionThatIsNewWhenItIsFirstSeenMayHaveTakenOver(t *testing.T) {
	k := newKeeper(t, says(time.Hour, nil))
	const age = takeoverTime / 4
	k.known.revisions["f-1"].CreationTimestamp = metav1.NewTime(k.clock.Now().Add(-age))
	if left := k.run(t, newCluster()).Expires.Sub(k.clock.Now()); left != takeoverTime-age {
		t.Errorf("the answer is good for %s, want %s", left, takeoverTime-age)
	}
}

// An answer in view of seeds of which some could not be read says too little of
// what the function would say.
func TestAnAnswerToPartOfTheSeedsIsNotKept(t *testing.T) {
	k := newKeeper(t, says(time.Hour, nil))
	in := newCluster()
	unread := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Unreadable"}
	in.errs[unread] = &watchError{}
	seed := func() {
		in.tracker.Track(testXR, nil, []dependency.Requirement{{
			Step: "step", Name: "it", From: dependency.Resources, Reference: dependency.Reference{GVK: unread, Name: "a"},
		}})
	}
	for range 2 {
		seed()
		k.run(t, in)
	}
	if k.calls() != 2 {
		t.Errorf("%d calls in two runs without the seed, want one each", k.calls())
	}
}

// A function that asks for something only if it isn't shown it is called with it,
// without it, and not once more with it.
func TestTheSameRequestIsNotMadeTwiceInARun(t *testing.T) {
	want := resources(map[string]*fnv1.ResourceSelector{"it": byName("ns", "a")})
	k := newKeeper(t, func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		if _, shown := req.GetRequiredResources()["it"]; shown {
			return says(time.Hour, nil)(ctx, req)
		}
		return says(time.Hour, want)(ctx, req)
	})
	in := newCluster(configMap("ns", "a", nil))
	track := func(a *Answer) { in.tracker.Track(testXR, nil, a.Requirements) }
	track(k.run(t, in))
	for change := range 3 {
		in.remove("a")
		in.add(configMap("ns", "a", map[string]string{"change": strconv.Itoa(change)}))
		before := k.calls()
		track(k.run(t, in))
		if n := k.calls() - before; n > 2 {
			t.Errorf("a change of what it requires costs %d calls, want 2 at most", n)
		}
	}
}

// A clock that is set back must not make an answer good for longer than its TTL.
func TestAnAnswerFromATimeToComeIsNotGivenAgain(t *testing.T) {
	k := newKeeper(t, says(time.Second, nil))
	in := newCluster()
	k.run(t, in)
	k.pass(-time.Hour)
	if k.run(t, in); k.calls() != 2 {
		t.Errorf("%d calls, want another once the clock is set back", k.calls())
	}
	if k.run(t, in); k.calls() != 2 {
		t.Errorf("%d calls, want that the answer since then is given again", k.calls())
	}
}
