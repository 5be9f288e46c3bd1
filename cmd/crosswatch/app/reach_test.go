// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// reachTest sends requests whose answers the test gives.
type reachTest struct {
	*reach
	t     *testing.T
	clock *clocktesting.FakePassiveClock
}

func newReachTest(t *testing.T) *reachTest {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return &reachTest{t: t, clock: clock, reach: &reach{tolerance: time.Minute, clock: clock}}
}

func (r *reachTest) after(d time.Duration) { r.clock.SetTime(r.clock.Now().Add(d)) }

// send sends a request that meanwhile happens to.
func (r *reachTest) send(code int, err error, meanwhile func()) {
	r.t.Helper()
	r.sendFor(r.t.Context(), code, err, meanwhile)
}

func (r *reachTest) sendFor(ctx context.Context, code int, err error, meanwhile func()) {
	r.t.Helper()
	transport := r.watch(roundTripper(func(*http.Request) (*http.Response, error) {
		meanwhile()
		return &http.Response{StatusCode: code, Body: http.NoBody}, err
	}))
	response, got := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "https://api/", nil))
	if !errors.Is(got, err) {
		r.t.Errorf("the transport's error is %v, want %v", got, err)
	}
	_ = response.Body.Close()
}

func (r *reachTest) is(ready bool, when string) {
	r.t.Helper()
	r.isIfAsked(ready, when, func(context.Context) {})
}

func (r *reachTest) isIfAsked(ready bool, when string, ask func(context.Context)) {
	r.t.Helper()
	probe := httptest.NewRequestWithContext(r.t.Context(), http.MethodGet, "/readyz", nil)
	if err := r.checker(ask)(probe); (err == nil) != ready {
		r.t.Errorf("%s: ready is %t, error %v", when, err == nil, err)
	}
}

var errRefused = errors.New("connection refused")

func nothing() {}

func TestReadinessEndsAMinuteAfterTheFirstRequestWithoutAnAnswer(t *testing.T) {
	cases := map[string]struct {
		code  int
		err   error
		ready bool
	}{
		"Refused":         {err: errRefused},
		"TooManyRequests": {code: http.StatusTooManyRequests},
		"Unavailable":     {code: http.StatusServiceUnavailable},
		"Forbidden":       {code: http.StatusForbidden, ready: true},
		"OK":              {code: http.StatusOK, ready: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newReachTest(t)
			r.send(http.StatusOK, nil, nothing)
			r.after(time.Hour)
			r.is(true, "nothing was asked for an hour")
			r.send(tc.code, tc.err, nothing)
			r.after(time.Minute)
			r.is(true, "for a minute")
			r.send(tc.code, tc.err, nothing)
			r.after(time.Second)
			r.is(tc.ready, "for longer than a minute")
			r.send(http.StatusOK, nil, nothing)
			r.is(true, "after an answer")
		})
	}
}

func TestARequestThatHangsCountsUnlessAnotherIsAnswered(t *testing.T) {
	r := newReachTest(t)
	r.send(http.StatusOK, nil, func() {
		r.after(time.Hour)
		r.is(false, "one request hangs")
		r.send(http.StatusOK, nil, nothing)
		r.is(true, "another is answered")
		r.after(time.Hour)
		r.is(false, "nothing was answered since")
	})
	r.is(true, "it is answered after all")
}

func TestTheProbeAsksItselfBeforeItFails(t *testing.T) {
	r := newReachTest(t)
	ask := func(code int, err error) func(context.Context) {
		return func(ctx context.Context) { r.sendFor(ctx, code, err, nothing) }
	}
	never := func(context.Context) { t.Error("it asked while nothing was in doubt") }
	r.isIfAsked(true, "nothing was sent", never)
	r.send(http.StatusInternalServerError, nil, nothing)
	r.after(time.Minute)
	r.isIfAsked(true, "for a minute", never)
	r.after(time.Second)
	r.isIfAsked(false, "it gets no answer either", ask(0, errRefused))
	r.isIfAsked(true, "only what was sent before is in trouble", ask(http.StatusOK, nil))
	r.isIfAsked(true, "the answer counts", never)
}

func TestARequestThatIsAbandonedSaysNothing(t *testing.T) {
	r := newReachTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.sendFor(ctx, 0, context.Canceled, cancel)
	r.after(time.Hour)
	r.is(true, "nobody waits for an answer")

	r.send(0, errRefused, nothing)
	r.sendFor(ctx, 0, context.Canceled, nothing)
	r.after(time.Hour)
	r.is(false, "one before it failed")
}

func TestARequestThatTimesOutHasNoAnswer(t *testing.T) {
	r := newReachTest(t)
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	r.sendFor(ctx, 0, context.DeadlineExceeded, nothing)
	r.after(time.Hour)
	r.is(false, "the last request timed out")
}
