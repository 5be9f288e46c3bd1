// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The estimate and the heap differ by no more than this factor, whatever the
// tracker holds.
const bytesFactor = 1.5

func TestBytesFollowTheHeap(t *testing.T) {
	const xrs = 2000
	numbered := func(prefix string, i int) string { return fmt.Sprintf("%s-%010d", prefix, i) }
	named := func(gvk schema.GroupVersionKind, i int) Reference {
		return Reference{GVK: gvk, Namespace: benchXR(i).Namespace, Name: numbered("object", i)}
	}
	cases := map[string]func(i int) ([]Reference, []Requirement){
		"Mixed":   func(i int) ([]Reference, []Requirement) { return benchRecord(i, 0) },
		"Nothing": func(int) ([]Reference, []Requirement) { return nil, nil },
		"ComposedAlone": func(i int) ([]Reference, []Requirement) {
			var composes []Reference
			for n := range 20 {
				composes = append(composes, named(replicas, 20*i+n))
			}
			return composes, nil
		},
		"RequiredByName": func(i int) ([]Reference, []Requirement) {
			var requires []Requirement
			for n := range 5 {
				requires = append(requires, Requirement{Step: "one", Name: numbered("requirement", n), Reference: named(clusters, 5*i+n)})
			}
			return nil, requires
		},
		"RequiredByAll": func(int) ([]Reference, []Requirement) {
			return nil, []Requirement{requires("a"), requires("b"), {Step: "one", Name: "all", Reference: Reference{GVK: replicas}}}
		},
		"SelectorsOfTheirOwn": func(i int) ([]Reference, []Requirement) {
			return nil, []Requirement{{Step: "one", Name: "own", Reference: Reference{
				GVK: clusters, Labels: map[string]string{"example.org/fleet": "main", "example.org/owner": numbered("owner", i)},
			}}}
		},
		"KindsOfTheirOwn": func(i int) ([]Reference, []Requirement) {
			return []Reference{named(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Kind" + strconv.Itoa(i)}, i)}, nil
		},
	}
	for name, record := range cases {
		t.Run(name, func(t *testing.T) {
			before := heapBytes()
			tracker := NewTracker()
			for i := range xrs {
				composes, requires := record(i)
				tracker.Track(benchXR(i), composes, requires)
			}
			heap := float64(heapBytes() - before)
			estimate := float64(tracker.Stats().Bytes)
			runtime.KeepAlive(tracker)
			t.Logf("%.0f bytes of heap for each XR, estimated %.0f", heap/xrs, estimate/xrs)
			if estimate > heap*bytesFactor || estimate < heap/bytesFactor {
				t.Errorf("the estimate of %.0f bytes is more than %.1f times off the heap's %.0f", estimate, bytesFactor, heap)
			}
		})
	}
}

// recount adds up from scratch what Stats().Bytes is kept as.
func recount(t *Tracker) int {
	bytes := len(t.records)*recordBytes + len(t.index.kinds)*kindBytes
	for _, k := range t.index.kinds {
		bytes += len(k.holders) * holderBytes
		for _, e := range k.names {
			bytes += e.bytes() + len(e.holders)*holderBytes
		}
		for _, e := range k.selectors {
			bytes += e.bytes() + len(e.holders)*holderBytes
		}
	}
	for _, rec := range t.records {
		for _, part := range rec.parts() {
			bytes += len(part.composed)*composedBytes + len(part.required)*requiredBytes
		}
	}
	return bytes
}
