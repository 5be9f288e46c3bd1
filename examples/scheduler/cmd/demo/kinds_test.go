// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSights(t *testing.T) {
	status := func(fields map[string]any) map[string]any { return map[string]any{"status": fields} }
	conditions := func(all ...any) map[string]any { return status(map[string]any{"conditions": all}) }
	is := func(kind, value string) any { return map[string]any{"type": kind, "status": value} }

	cases := map[string]struct {
		reason string
		sight  sight
		object map[string]any
		want   bool
	}{
		"PlacedThere":       {reason: "it is on that cluster", sight: placed("a", "b", "east"), object: map[string]any{"spec": map[string]any{"clusterName": "east"}}, want: true},
		"PlacedElsewhere":   {reason: "it is on another", sight: placed("a", "b", "east"), object: map[string]any{"spec": map[string]any{"clusterName": "west"}}},
		"Waiting":           {reason: "no cluster is what was looked for", sight: placed("a", "b", ""), object: map[string]any{"spec": map[string]any{}}, want: true},
		"Counted":           {reason: "both counts agree", sight: counted("a", "b", 1, 2), object: status(map[string]any{"scheduled": int64(1), "unschedulable": int64(2)}), want: true},
		"CountedOtherwise":  {reason: "one count differs", sight: counted("a", "b", 1, 2), object: status(map[string]any{"scheduled": int64(1), "unschedulable": int64(0)})},
		"NotCountedYet":     {reason: "no count is not a count of zero", sight: counted("a", "b", 0, 0), object: status(nil)},
		"Healthy":           {reason: "all conditions are true", sight: healthy("a", "b"), object: conditions(is("Ready", "True"), is("Synced", "True"), is("Scheduled", "True")), want: true},
		"HealthyButFor":     {reason: "one is not", sight: healthy("a", "b"), object: conditions(is("Ready", "True"), is("Synced", "False"), is("Scheduled", "True"))},
		"NoConditions":      {reason: "a condition that is missing is not true", sight: healthy("a", "b"), object: map[string]any{}},
		"Established":       {reason: "the XRD says so", sight: established(definitions, "x"), object: conditions(is("Established", "True")), want: true},
		"Tracking":          {reason: "all XRs are tracked", sight: tracking("x", 2), object: status(map[string]any{"composites": map[string]any{"tracked": int64(2)}, "conditions": []any{is("Converged", "True")}}), want: true},
		"TrackingSomething": {reason: "one XR is missing", sight: tracking("x", 2), object: status(map[string]any{"composites": map[string]any{"tracked": int64(1)}, "conditions": []any{is("Converged", "True")}})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.sight.seen(&unstructured.Unstructured{Object: tc.object}); got != tc.want {
				t.Errorf("%s\nwhether %s: want %t, got %t", tc.reason, tc.sight.what, tc.want, got)
			}
		})
	}
}
