// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/crosswatch-io/crosswatch/internal/engine"
)

func TestSoonest(t *testing.T) {
	cases := map[string]struct {
		in   []time.Duration
		want time.Duration
	}{
		"None":         {},
		"Zeros":        {in: []time.Duration{0, 0}},
		"SkipsZero":    {in: []time.Duration{0, time.Hour}, want: time.Hour},
		"Shortest":     {in: []time.Duration{time.Hour, time.Minute, 2 * time.Hour}, want: time.Minute},
		"SkipsThePast": {in: []time.Duration{-time.Hour, time.Minute}, want: time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := soonest(tc.in...); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A resync is due once in each interval, at the same phase for ever.
func TestUntilResync(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		interval := time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(rt, "interval"))
		uid := types.UID(rapid.String().Draw(rt, "uid"))
		now := time.Unix(0, rapid.Int64Range(0, 1<<61).Draw(rt, "now"))

		wait := untilResync(now, uid, interval)
		if wait <= 0 || wait > interval {
			rt.Fatalf("wait %s of %s", wait, interval)
		}
		if next := untilResync(now.Add(wait), uid, interval); next != interval {
			rt.Fatalf("the tick after the next is %s away, want %s", next, interval)
		}
	})
	if got := untilResync(time.Unix(0, 0), "uid", 0); got != 0 {
		t.Errorf("without an interval there is no resync: %s", got)
	}
}

func TestIsOnlyWatches(t *testing.T) {
	watch := &engine.WatchError{State: engine.Forbidden}
	other := errors.New("other")
	cases := map[string]struct {
		err  error
		want bool
	}{
		"Watch":   {err: watch, want: true},
		"Wrapped": {err: fmt.Errorf("step: %w", watch), want: true},
		"Joined":  {err: fmt.Errorf("all: %w", errors.Join(watch, fmt.Errorf("one: %w", watch))), want: true},
		"Mixed":   {err: errors.Join(watch, other)},
		"Other":   {err: fmt.Errorf("step: %w", other)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isOnlyWatches(tc.err); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestReconcileRequeue(t *testing.T) {
	w := newWorld()
	resync := untilResync(w.clock.Now(), w.app().GetUID(), time.Hour)
	if result := w.mustReconcile(t); result.RequeueAfter != resync || result.Priority == nil || *result.Priority >= 0 {
		t.Errorf("a resync is due in %s, at low priority: %+v", resync, result)
	}
	w.annotate("crossplane.io/poll-interval", "1s")
	if result := w.mustReconcile(t); result.RequeueAfter != time.Second || result.Priority != nil {
		t.Errorf("the XR asked for every second: %+v", result)
	}
	w.annotate("crossplane.io/poll-interval", "1ns")
	if result := w.mustReconcile(t); result.RequeueAfter != time.Second {
		t.Errorf("no XR is polled more often than every second: %+v", result)
	}
	w.annotate("crossplane.io/poll-interval", "1h")
	w.ttl = time.Nanosecond
	if result := w.mustReconcile(t); result.RequeueAfter != time.Second {
		t.Errorf("nor for its functions: %+v", result)
	} else if result.Priority == nil || *result.Priority >= 0 || *result.Priority <= handler.LowPriority {
		t.Errorf("an answer that expires comes after events and before resyncs: %+v", result)
	}
}
