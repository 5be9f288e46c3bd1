// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"strconv"
	"testing"
)

// Selectors that share a common pair are spread over their rarer ones, or each
// object with the common pair would be tested against all of them.
func TestSelectorsAreFiledUnderRarePairs(t *testing.T) {
	tracker := NewTracker()
	for i := range 1000 {
		tracker.Require(XR{Name: strconv.Itoa(i)}, Requirement{Reference: Reference{
			GVK:    clusters,
			Labels: map[string]string{"app": "everywhere", "id": strconv.Itoa(i)},
		}})
	}

	pairs := &tracker.index.pairs
	for id := range pairs.table.rows.len {
		if n := pairs.count(pairID(id)); n > 2 {
			t.Errorf("%d selectors are filed under one pair, want at most 2", n)
		}
	}
	obj := object("", "c", map[string]string{"app": "everywhere", "id": "7"})
	same(t, "Dependants", []XR{{Name: "7"}}, tracker.Dependants(nil, clusters, obj))
}

func TestWhatRepeatsIsHeldOnce(t *testing.T) {
	const xrs = 100
	tracker := NewTracker()
	for i := range xrs {
		tracker.Track(XR{Namespace: "apps", Name: strconv.Itoa(i)}, []Reference{
			cluster("shared"),
			{GVK: replicas, Namespace: "apps", Name: "shared"},
		}, []Requirement{
			{Step: "one", Name: "some", Reference: Reference{GVK: clusters, Labels: map[string]string{"p": "1", "q": "1"}}},
			{Step: "one", Name: "all", Reference: Reference{GVK: clusters}},
		})
	}
	x := &tracker.index
	same(t, "names: apps, shared, one, some, all", 5, x.names.table.held)
	same(t, "labels: p, 1, and the selector", 3, x.labels.table.held)
	same(t, "kinds", 2, x.kinds.table.held)
	same(t, "entries", 4, x.entries.table.held)
	same(t, "pairs", 1, x.pairs.table.held)
	same(t, "references", 4*xrs, tracker.Stats().References)
}

func TestAReferenceOfOneXRHasNoSet(t *testing.T) {
	tracker := NewTracker()
	for i := range 100 {
		tracker.Track(XR{Name: strconv.Itoa(i)}, []Reference{cluster(strconv.Itoa(i))}, nil)
	}
	same(t, "sets", uint32(0), tracker.index.entries.holders.sets.len)
}

// A selector may come between the question whether there are any and the search.
func TestASearchThatNeedsLabelsAsksForThem(t *testing.T) {
	tracker := NewTracker()
	tracker.Track(app, []Reference{cluster("c"), {GVK: clusters, Labels: map[string]string{"p": "1"}}}, nil)
	found, more := tracker.dependants(nil, &search{gvk: clusters, name: "c"})
	same(t, "found", []XR(nil), found)
	same(t, "more", true, more)
}
