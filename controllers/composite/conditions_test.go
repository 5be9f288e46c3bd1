// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer"
)

func TestReady(t *testing.T) {
	resource := func(name string, ready bool) composer.ComposedStatus {
		return composer.ComposedStatus{Name: name, Ready: ready}
	}
	var many []composer.ComposedStatus
	for i := range 12 {
		many = append(many, resource(fmt.Sprintf("r%02d", 11-i), false))
	}
	before := commonv1.True(commonv1.TypeReady, commonv1.ReasonAvailable).WithObservedGeneration(3)
	cases := map[string]struct {
		reason string
		kept   []commonv1.Condition
		out    composer.Output
		want   string
		says   string
	}{
		"AllReady": {
			reason: "All desired resources are ready.",
			out:    composer.Output{Complete: true, Resources: []composer.ComposedStatus{resource("a", true)}},
			want:   commonv1.ReasonAvailable,
		},
		"Nothing": {reason: "Nothing is unready.", out: composer.Output{Complete: true}, want: commonv1.ReasonAvailable},
		"Unready": {
			reason: "They are named, sorted.",
			out: composer.Output{Complete: true, Resources: []composer.ComposedStatus{
				resource("b", false), resource("c", true), resource("a", false),
			}},
			want: commonv1.ReasonCreating, says: "a, b",
		},
		"Many": {
			reason: "A long list is cut.",
			out:    composer.Output{Complete: true, Resources: many},
			want:   commonv1.ReasonCreating, says: "r09 and 2 more",
		},
		"PipelineSaysReady": {
			reason: "The pipeline has the last word.",
			out:    composer.Output{Complete: true, Ready: ptr.To(true), Resources: []composer.ComposedStatus{resource("a", false)}},
			want:   commonv1.ReasonAvailable,
		},
		"PipelineSaysUnready": {
			reason: "The pipeline has the last word.",
			out:    composer.Output{Complete: true, Ready: ptr.To(false), Resources: []composer.ComposedStatus{resource("a", true)}},
			want:   commonv1.ReasonCreating,
		},
		"Failed":      {reason: "A failed run leaves it.", kept: []commonv1.Condition{before}, want: commonv1.ReasonAvailable},
		"FailedFirst": {reason: "There is nothing to leave.", want: commonv1.ReasonCreating},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ready(tc.kept, tc.out, 7)
			if got.Reason != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%s Got %+v", tc.reason, got)
			}
		})
	}
}

func TestSyncedObservesWhatWasComposed(t *testing.T) {
	kept := []commonv1.Condition{commonv1.True(commonv1.TypeSynced, commonv1.ReasonReconcileSuccess).WithObservedGeneration(3)}
	if got := synced(kept, errors.New("no"), 7).ObservedGeneration; got != 3 {
		t.Errorf("a failed run observed generation %d", got)
	}
	if got := synced(kept, nil, 7).ObservedGeneration; got != 7 {
		t.Errorf("a run observed generation %d", got)
	}
}

func TestCustomConditionsOfAFailedRun(t *testing.T) {
	kept := []commonv1.Condition{
		commonv1.True("Reached", "Old"), commonv1.True("Unreached", "Old"), commonv1.True(commonv1.TypeSynced, "Old"),
	}
	out := composer.Output{Conditions: []commonv1.Condition{commonv1.True("Reached", "New")}}
	cases := map[string]struct {
		reason string
		err    error
		want   map[string]string
	}{
		"Fatal": {
			reason: "Nobody knows any more whether it holds.",
			err:    fmt.Errorf("pipeline: %w", &composer.FatalError{Step: "s", Message: "m"}),
			want:   map[string]string{"Reached": "New", "Unreached": commonv1.ReasonFatalError},
		},
		"Error": {
			reason: "An outage says nothing about the XR.",
			err:    errors.New("unreachable"),
			want:   map[string]string{"Reached": "New", "Unreached": "Old"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, c := range customConditions(kept, out, tc.err) {
				got[c.Type] = c.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDated(t *testing.T) {
	then, now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	same := commonv1.True("Same", "Why")
	same.LastTransitionTime = metav1.NewTime(then)
	live := []commonv1.Condition{same, commonv1.True("Changed", "Why")}
	got := dated([]commonv1.Condition{
		commonv1.True("Same", "Why").WithObservedGeneration(9), commonv1.True("Changed", "Other"), commonv1.True("Added", "Why"),
	}, live, now)
	want := map[string]time.Time{"Same": then, "Changed": now, "Added": now}
	for _, c := range got {
		if !c.LastTransitionTime.Time.Equal(want[c.Type]) {
			t.Errorf("%s since %s, want %s", c.Type, c.LastTransitionTime, want[c.Type])
		}
	}
}

func TestShortened(t *testing.T) {
	long := strings.Repeat("ä", 100)
	for limit := range 20 {
		got := shortened(long, limit+3)
		if len(got) > limit+3 || !utf8.ValidString(got) {
			t.Errorf("cut to %d bytes it is %q", limit+3, got)
		}
	}
	if got := shortened("short", 10); got != "short" {
		t.Errorf("got %q", got)
	}
}
