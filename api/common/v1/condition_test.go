// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

var (
	before = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	after  = metav1.NewTime(before.Add(time.Hour))
)

func at(when metav1.Time, c commonv1.Condition) commonv1.Condition {
	c.LastTransitionTime = when
	return c
}

func TestSetConditions(t *testing.T) {
	synced := commonv1.True(commonv1.TypeSynced, commonv1.ReasonReconcileSuccess)
	failed := commonv1.False(commonv1.TypeSynced, commonv1.ReasonReconcileError, "step \"a\" failed")
	ready := commonv1.True(commonv1.TypeReady, commonv1.ReasonAvailable)

	tests := map[string]struct {
		reason string
		have   []commonv1.Condition
		set    []commonv1.Condition
		want   []commonv1.Condition
	}{
		"First": {
			reason: "A type that isn't there is added.",
			set:    []commonv1.Condition{at(after, synced)},
			want:   []commonv1.Condition{at(after, synced)},
		},
		"Unchanged": {
			reason: "What says the same keeps its time, or each pass would write the status.",
			have:   []commonv1.Condition{at(before, synced)},
			set:    []commonv1.Condition{at(after, synced)},
			want:   []commonv1.Condition{at(before, synced)},
		},
		"OtherGeneration": {
			reason: "The same said of another generation is no transition.",
			have:   []commonv1.Condition{at(before, synced.WithObservedGeneration(1))},
			set:    []commonv1.Condition{at(after, synced.WithObservedGeneration(2))},
			want:   []commonv1.Condition{at(before, synced.WithObservedGeneration(2))},
		},
		"OtherStatus": {
			reason: "A changed status has the time of the change.",
			have:   []commonv1.Condition{at(before, synced)},
			set:    []commonv1.Condition{at(after, failed)},
			want:   []commonv1.Condition{at(after, failed)},
		},
		"OtherMessage": {
			reason: "A changed message has the time of the change.",
			have:   []commonv1.Condition{at(before, failed)},
			set:    []commonv1.Condition{at(after, failed.WithMessage("step \"b\" failed"))},
			want:   []commonv1.Condition{at(after, failed.WithMessage("step \"b\" failed"))},
		},
		"OrderIsKept": {
			reason: "The order is that of first setting, so that it never makes a difference to write.",
			have:   []commonv1.Condition{at(before, ready), at(before, failed)},
			set:    []commonv1.Condition{at(after, synced), at(after, ready)},
			want:   []commonv1.Condition{at(before, ready), at(after, synced)},
		},
		"LastOfAType": {
			reason: "Of two of one type the last one counts.",
			set:    []commonv1.Condition{at(before, failed), at(after, synced)},
			want:   []commonv1.Condition{at(after, synced)},
		},
		"None": {
			reason: "Setting nothing changes nothing.",
			have:   []commonv1.Condition{at(before, ready)},
			want:   []commonv1.Condition{at(before, ready)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := commonv1.ConditionedStatus{Conditions: tc.have}
			status.SetConditions(tc.set...)
			if diff := cmp.Diff(tc.want, status.Conditions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSetConditionsTakesTheTime(t *testing.T) {
	var status commonv1.ConditionedStatus
	status.SetConditions(commonv1.True(commonv1.TypeReady, commonv1.ReasonAvailable))
	if got := status.GetCondition(commonv1.TypeReady); got.LastTransitionTime.IsZero() {
		t.Error("a new condition has no transition time")
	}
}

func TestGetCondition(t *testing.T) {
	ready := commonv1.True(commonv1.TypeReady, commonv1.ReasonAvailable)
	status := commonv1.ConditionedStatus{Conditions: []commonv1.Condition{ready}}
	tests := map[string]commonv1.Condition{
		commonv1.TypeReady:  ready,
		commonv1.TypeSynced: {Type: commonv1.TypeSynced, Status: corev1.ConditionUnknown},
	}
	for conditionType, want := range tests {
		t.Run(conditionType, func(t *testing.T) {
			if diff := cmp.Diff(want, status.GetCondition(conditionType)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsSystemConditionType(t *testing.T) {
	tests := map[string]bool{
		"Synced": true, "Ready": true, "Responsive": true, "Healthy": true, "UpToDate": true,
		"DatabaseReady": false, "ready": false, "": false,
	}
	for conditionType, want := range tests {
		t.Run(conditionType, func(t *testing.T) {
			if got := commonv1.IsSystemConditionType(conditionType); got != want {
				t.Errorf("IsSystemConditionType(%q) = %t, want %t", conditionType, got, want)
			}
		})
	}
}
