// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	start   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fought  = object("fought")
	another = object("another")
)

func object(name string) Object {
	return Object{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Name: types.NamespacedName{Namespace: "team", Name: name}}
}

// xr is an XR and its breaker, with a clock of its own.
type xr struct {
	*Breaker

	now          time.Time
	dependencies int
}

func newXR(dependencies int) *xr {
	return &xr{Breaker: New(DefaultSettings()), now: start, dependencies: dependencies}
}

func (x *xr) after(d time.Duration) *xr {
	x.now = x.now.Add(d)
	return x
}

// run is one that takes no time and is charged.
func (x *xr) run(cause Object, rewrote bool) (opened bool) {
	x.Start(x.now)
	return x.Charge(x.now, Charge{Cause: cause, Rewrote: rewrote, Dependencies: x.dependencies})
}

// charged runs that many times, with that time between two, and reports after how
// many the breaker opened, or zero.
func (x *xr) charged(times int, every time.Duration, cause Object, rewrote bool) int {
	for i := range times {
		if x.run(cause, rewrote) {
			return i + 1
		}
		x.after(every)
	}
	return 0
}

func (x *xr) isOpen() bool {
	_, open := x.Open()
	return open
}

func TestOrdinaryUseIsNeverSlowed(t *testing.T) {
	cases := map[string]struct {
		dependencies int
		runs         int
		every        time.Duration
	}{
		"an XR is composed and each of its 100 objects gets ready at once":     {dependencies: 100, runs: 101},
		"100 objects report 10 steps of progress each, all at once":            {dependencies: 100, runs: 1000},
		"a rollout of 80 pods is shown in the status as quickly as it happens": {dependencies: 1, runs: 80},
		"a scheduler decides anew every second for three hours":                {dependencies: 1, runs: 3 * 3600, every: time.Second},
		"a scheduler decides twice a second for a minute and a half":           {dependencies: 1, runs: 180, every: time.Second / 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if after := newXR(tc.dependencies).charged(tc.runs, tc.every, fought, false); after != 0 {
				t.Errorf("the breaker opened after %d of %d runs", after, tc.runs)
			}
		})
	}
}

func TestABreakerOfTheZeroSettingsNeverOpens(t *testing.T) {
	x := newXR(1)
	x.Breaker = New(Settings{})
	if after := x.charged(10_000, 0, fought, true); after != 0 {
		t.Errorf("it opened after %d runs", after)
	}
}

func TestALoopOpensItsBreaker(t *testing.T) {
	for name, tc := range map[string]struct {
		dependencies int
		want         int // runs
	}{
		"with one dependency":    {dependencies: 1, want: 111},
		"with many dependencies": {dependencies: 50, want: 601},
	} {
		t.Run(name, func(t *testing.T) {
			x := newXR(tc.dependencies)
			if after := x.charged(10_000, 0, fought, true); after != tc.want {
				t.Errorf("the breaker opened after %d runs, want %d", after, tc.want)
			}
			if got := x.Wait(x.now); got != time.Second {
				t.Errorf("the first pause is %s, want 1s", got)
			}
		})
	}
}

// looping is an XR whose breaker has just opened.
func looping(rewrote bool) *xr {
	x := newXR(1)
	x.charged(10_000, 0, fought, rewrote)
	return x
}

func TestPauses(t *testing.T) {
	s := func(seconds ...int) (out []time.Duration) {
		for _, n := range seconds {
			out = append(out, time.Duration(n)*time.Second)
		}
		return out
	}
	for name, tc := range map[string]struct {
		rewrote bool
		want    []time.Duration
	}{
		"of a fight over one object get longer":              {rewrote: true, want: s(1, 2, 4, 8, 16, 30, 30, 30)},
		"of an XR that answers another object stay as short": {rewrote: false, want: s(1, 1, 1, 1, 1, 1, 1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			x := looping(tc.rewrote)
			var got []time.Duration
			for range tc.want {
				got = append(got, x.Wait(x.now))
				x.after(x.Wait(x.now)).run(fought, tc.rewrote)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pauses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALoopKeepsItsBreakerOpen(t *testing.T) {
	x := looping(true)
	for range 24 * 120 {
		x.after(x.Wait(x.now)*19/10).run(fought, true) // somebody takes his time
		if !x.isOpen() {
			t.Fatalf("it closed after %s", x.now.Sub(start))
		}
	}
}

func TestAnOpenBreakerClosesOnceItIsQuiet(t *testing.T) {
	x := looping(true)
	closes := x.Closes()
	if got := closes.Sub(x.now); got != time.Minute {
		t.Errorf("it closes after %s, want 1m", got)
	}
	if x.Start(closes.Add(-time.Nanosecond)) {
		t.Error("it closed too early")
	}
	if !x.Start(closes) {
		t.Error("it did not close")
	}
	if x.Start(closes) {
		t.Error("it closed twice")
	}
	if wait := x.Wait(closes); wait != 0 {
		t.Errorf("closed, it has an event wait for %s", wait)
	}
}

func TestAnOpenBreakerClosesWhileTheXRWritesAsOftenAsItMay(t *testing.T) {
	x := looping(false)
	for range 100 {
		x.after(3*time.Second).run(fought, false)
		if !x.isOpen() {
			return
		}
	}
	t.Error("a write every three seconds kept it open for five minutes")
}

func TestAFightThatEndedLeavesNoTraceOnOrdinaryWork(t *testing.T) {
	x := looping(true)
	for range 10 {
		x.after(x.Wait(x.now)).run(fought, true)
	}
	for range 10 {
		x.after(30*time.Second).run(another, false)
	}
	if x.isOpen() {
		t.Error("it is open after five minutes in which the XR wrote once in 30 s")
	}
}

// An XR that is woken and writes nothing is paced like any other while its breaker
// is open, and does not keep it open.
func TestRunsThatWriteNothingCostNothing(t *testing.T) {
	x := looping(true)
	for range 100 {
		if x.after(x.Wait(x.now)).Start(x.now) {
			if took := x.now.Sub(start); took > 70*time.Second {
				t.Errorf("it closed after %s", took)
			}
			return
		}
		if got := x.Wait(x.now); got != time.Second {
			t.Fatalf("pause %s, want 1s", got)
		}
	}
	t.Error("it did not close")
}

func TestAUsersChangeWaitsForASecondAtMost(t *testing.T) {
	x := looping(true)
	for range 10 {
		x.after(x.Wait(x.now)).run(fought, true)
	}
	if got := x.ShortWait(x.now); got != time.Second {
		t.Errorf("right after a run it waits for %s, want 1s", got)
	}
	if got := x.ShortWait(x.now.Add(time.Second)); got != 0 {
		t.Errorf("a second after a run it waits for %s, want none", got)
	}
}

func TestTheLoopIsNamedAfterWhatMostRunsAnswer(t *testing.T) {
	x := newXR(1)
	x.charged(100, time.Second, another, false) // for long, and within bounds
	for i := range 10_000 {
		cause, rewrote := fought, true
		if i%3 == 0 {
			cause, rewrote = another, false
		}
		if x.run(cause, rewrote) {
			break
		}
	}
	want := Loop{Object: fought, Rewritten: true}
	if got, _ := x.Open(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	x.charged(100, time.Second, another, false)
	if got, _ := x.Open(); got != want {
		t.Errorf("while open, got %v, want %v still", got, want)
	}
}
