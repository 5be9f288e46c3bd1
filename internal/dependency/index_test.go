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

	for p, entries := range tracker.index.kinds[clusters].pairs {
		if len(entries) > 2 {
			t.Errorf("%d selectors are filed under %s=%s, want at most 2", len(entries), p.key, p.value)
		}
	}
	obj := object("", "c", map[string]string{"app": "everywhere", "id": "7"})
	same(t, "Dependants", []XR{{Name: "7"}}, tracker.Dependants(nil, clusters, obj))
}

func TestEqualReferencesShareAnEntry(t *testing.T) {
	tracker := NewTracker()
	for i := range 100 {
		tracker.Track(XR{Name: strconv.Itoa(i)}, []Reference{cluster("a")}, []Requirement{
			{Reference: Reference{GVK: clusters, Labels: map[string]string{"p": "1", "q": "1"}}},
			{Reference: Reference{GVK: clusters}},
		})
	}
	k := tracker.index.kinds[clusters]
	same(t, "names", 1, len(k.names))
	same(t, "selectors", 2, len(k.selectors))
	same(t, "pairs", 1, len(k.pairs))
	same(t, "references", 300, tracker.Stats().References)
}

func TestCanonicalLabelsAreUnambiguous(t *testing.T) {
	seen := map[string]map[string]string{}
	for _, labels := range []map[string]string{
		{}, {"": ""}, {"a": "b"}, {"a": `b","c"="d`}, {"a": "b", "c": "d"}, {"a=b": ""}, {"a": "=b"},
		{"a": "\xff"}, {"a": `\xff`}, {"a": "\x00"}, {`a"`: ""}, {"a": `"`},
	} {
		key := canonical(labels)
		if twin, ok := seen[key]; ok {
			t.Errorf("%q and %q are both spelt %s", labels, twin, key)
		}
		seen[key] = labels
	}
}
