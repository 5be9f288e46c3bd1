// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// Conditions returns the XR's conditions in their order, whoever set them.
func (x XR) Conditions() []commonv1.Condition {
	return decodeConditions(x.rawConditions())
}

// SetConditions adds the conditions or replaces those of the same types. A
// condition that has the same status, reason and message as before keeps its
// transition time; one that is the same altogether is not touched, nor is any
// condition of another type.
func (x XR) SetConditions(conditions ...commonv1.Condition) {
	raw := x.rawConditions()
	before := decodeConditions(raw)
	status := commonv1.ConditionedStatus{Conditions: slices.Clone(before)}
	status.SetConditions(conditions...)

	next, changed := slices.Clone(raw), false
	for i, c := range status.Conditions {
		switch {
		case i >= len(before):
			next, changed = append(next, encodeCondition(c)), true
		case !c.Equal(before[i]):
			next[i], changed = encodeCondition(c), true
		}
	}
	if changed {
		x.set(next, "status", "conditions")
	}
}

// rawConditions returns the conditions that have a type, without which a
// condition is nothing that could be found or replaced.
func (x XR) rawConditions() []any {
	return slices.DeleteFunc(slices.Clone(list(x.Object, "status", "conditions")), func(item any) bool {
		fields, ok := item.(map[string]any)
		return !ok || text(fields, "type") == ""
	})
}

func decodeConditions(raw []any) []commonv1.Condition {
	if len(raw) == 0 {
		return nil
	}
	conditions := make([]commonv1.Condition, 0, len(raw))
	for _, item := range raw {
		fields, _ := item.(map[string]any)
		c := commonv1.Condition{
			Type:    text(fields, "type"),
			Status:  corev1.ConditionStatus(text(fields, "status")),
			Reason:  text(fields, "reason"),
			Message: text(fields, "message"),
		}
		c.ObservedGeneration, _ = fields["observedGeneration"].(int64)
		if at, err := time.Parse(time.RFC3339, text(fields, "lastTransitionTime")); err == nil {
			c.LastTransitionTime = metav1.NewTime(at)
		}
		conditions = append(conditions, c)
	}
	return conditions
}

func encodeCondition(c commonv1.Condition) map[string]any {
	fields := map[string]any{
		"type":               c.Type,
		"status":             string(c.Status),
		"reason":             c.Reason,
		"lastTransitionTime": c.LastTransitionTime.UTC().Format(time.RFC3339),
	}
	if c.Message != "" {
		fields["message"] = c.Message
	}
	if c.ObservedGeneration != 0 {
		fields["observedGeneration"] = c.ObservedGeneration
	}
	return fields
}
