// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

var (
	roomKind  = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Room"}
	doorKind  = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Door"}
	podKind   = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	lampKind  = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Lamp"}
	roomFacts = Facts{
		XRD: "rooms.example.org", Kind: roomKind, Synced: true, Known: 3, Settled: 3,
		Stats: dependency.Stats{
			XRs: 2, References: 9, Composed: 4, Required: 5, ByName: 6, ByLabels: 3,
			Kinds: []dependency.KindStats{
				{GVK: doorKind, References: 5, Dependants: 2},
				{GVK: lampKind, References: 2, Dependants: 2},
				{GVK: podKind, References: 2, Dependants: 1},
			},
		},
	}
	watches = []engine.WatchInfo{
		{GVK: podKind, State: engine.Active, Objects: 12, Controllers: []string{"rooms.example.org"}},
		{GVK: doorKind, State: engine.Forbidden, Message: "not allowed", Controllers: []string{"a", "rooms.example.org"}},
		{GVK: roomKind, State: engine.Active, Objects: 3, Controllers: []string{"rooms.example.org"}},
	}
)

func TestStatusOf(t *testing.T) {
	want := v1alpha1.DependencyWatchStatusStatus{
		CompositeType: &v1.TypeReference{APIVersion: "example.org/v1", Kind: "Room"},
		Composites:    v1alpha1.CompositeCounts{Known: 3, Tracked: 2},
		References:    v1alpha1.ReferenceCounts{Total: 9, Composed: 4, Required: 5, ByName: 6, ByLabels: 3},
		Watches:       v1alpha1.WatchCounts{Wanted: 3, Active: 1, Failed: 1},
		Kinds: []v1alpha1.KindStatus{
			{APIVersion: "example.org/v1", Kind: "Door", References: 5, Dependants: 2, Watch: v1alpha1.WatchForbidden, Message: "not allowed"},
			{APIVersion: "v1", Kind: "Pod", References: 2, Dependants: 1, Watch: v1alpha1.WatchActive},
			{APIVersion: "example.org/v1", Kind: "Lamp", References: 2, Dependants: 2},
		},
	}
	if diff := cmp.Diff(want, StatusOf(roomFacts, watches)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatusOfNothing(t *testing.T) {
	want := v1alpha1.DependencyWatchStatusStatus{CompositeType: &v1.TypeReference{APIVersion: "example.org/v1", Kind: "Room"}}
	if diff := cmp.Diff(want, StatusOf(Facts{XRD: "rooms.example.org", Kind: roomKind}, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClusterStatusOf(t *testing.T) {
	houses := Facts{
		XRD: "houses.example.org", Synced: true, Known: 1, Settled: 1,
		Stats: dependency.Stats{
			XRs: 1, References: 8, Composed: 8, ByName: 8,
			Kinds: []dependency.KindStats{{GVK: podKind, References: 7, Dependants: 1}, {GVK: roomKind, References: 1, Dependants: 1}},
		},
	}
	want := v1alpha1.DependencyWatchStatusStatus{
		Composites: v1alpha1.CompositeCounts{Known: 4, Tracked: 3},
		References: v1alpha1.ReferenceCounts{Total: 17, Composed: 12, Required: 5, ByName: 14, ByLabels: 3},
		Watches:    v1alpha1.WatchCounts{Wanted: 4, Active: 2, Failed: 1},
		Kinds: []v1alpha1.KindStatus{
			{APIVersion: "v1", Kind: "Pod", References: 9, Dependants: 2, Watch: v1alpha1.WatchActive},
			{APIVersion: "example.org/v1", Kind: "Door", References: 5, Dependants: 2, Watch: v1alpha1.WatchForbidden, Message: "not allowed"},
			{APIVersion: "example.org/v1", Kind: "Lamp", References: 2, Dependants: 2},
			{APIVersion: "example.org/v1", Kind: "Room", References: 1, Dependants: 1, Watch: v1alpha1.WatchActive},
		},
		SharedWatches: []v1alpha1.SharedWatch{
			{APIVersion: "example.org/v1", Kind: "Door", State: v1alpha1.WatchForbidden, Controllers: 2, Message: "not allowed"},
			{APIVersion: "v1", Kind: "Pod", State: v1alpha1.WatchActive, Objects: 12, Controllers: 1},
			{APIVersion: "example.org/v1", Kind: "Room", State: v1alpha1.WatchActive, Objects: 3, Controllers: 1},
		},
	}
	if diff := cmp.Diff(want, ClusterStatusOf([]Facts{houses, roomFacts}, watches)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKindsAreLimited(t *testing.T) {
	const total = 250
	facts := Facts{Kind: roomKind}
	var many []engine.WatchInfo
	for i := range total {
		gvk := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: fmt.Sprintf("Kind%03d", i)}
		facts.Stats.Kinds = append(facts.Stats.Kinds, dependency.KindStats{GVK: gvk, References: 1 + i%2, Dependants: 1})
		many = append(many, engine.WatchInfo{GVK: gvk, State: engine.Active})
	}
	status := ClusterStatusOf([]Facts{facts}, many)
	if len(status.Kinds) != maxListed || status.KindsOmitted != total-maxListed || len(status.SharedWatches) != maxListed {
		t.Errorf("got %d kinds, %d omitted, %d shared watches", len(status.Kinds), status.KindsOmitted, len(status.SharedWatches))
	}
	if status.Watches.Wanted != total || status.Watches.Active != total {
		t.Errorf("want all %d watches counted, got %+v", total, status.Watches)
	}
	if got := status.Kinds[0].Kind; got != "Kind001" {
		t.Errorf("want the first of those with most references first, got %s", got)
	}
}

func TestConvergedOf(t *testing.T) {
	facts := func(name string, synced bool, known, settled int) Facts {
		return Facts{XRD: name, Synced: synced, Known: known, Settled: settled}
	}
	cases := map[string]struct {
		facts   []Facts
		want    corev1.ConditionStatus
		mention string
	}{
		"Nothing":  {want: corev1.ConditionTrue},
		"NoXRs":    {facts: []Facts{facts("a", true, 0, 0)}, want: corev1.ConditionTrue},
		"Settled":  {facts: []Facts{facts("a", true, 2, 2)}, want: corev1.ConditionTrue},
		"Starting": {facts: []Facts{facts("a", false, 0, 0)}, want: corev1.ConditionFalse, mention: `"a"`},
		"Behind":   {facts: []Facts{facts("a", true, 2, 2), facts("b", true, 2, 1)}, want: corev1.ConditionFalse, mention: `"b"`},
		"Many": {
			facts: []Facts{
				facts("a", false, 0, 0), facts("b", false, 0, 0), facts("c", false, 0, 0),
				facts("d", false, 0, 0), facts("e", false, 0, 0), facts("f", false, 0, 0),
			},
			want: corev1.ConditionFalse, mention: `"a", "b", "c", "d", "e" and others`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := convergedOf(tc.facts)
			if got.Status != tc.want || !strings.Contains(got.Message, tc.mention) {
				t.Errorf("want %s with %q, got %s with %q", tc.want, tc.mention, got.Status, got.Message)
			}
		})
	}
}
