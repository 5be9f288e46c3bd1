// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The benchmarks print their figures as lines of their own:
//
//	go test -run '^$' -bench . ./internal/dependency | grep ^figure

// Each XR composes ten resources, and requires one object by name and others by
// one of a thousand selectors.
const (
	benchComposed  = 10
	benchSelectors = 1000
	benchPerXR     = benchComposed + 2
)

var benchSizes = []int{10_000, 100_000}

func benchXR(i int) XR {
	return XR{Namespace: "team-" + strconv.Itoa(i%100), Name: fmt.Sprintf("application-%012d", i)}
}

// benchRecord is the record of the i-th XR. Records of another generation differ
// in one composed resource.
func benchRecord(i, generation int) ([]Reference, []Requirement) {
	xr := benchXR(i)
	composes := make([]Reference, benchComposed)
	for n := range composes {
		composes[n] = Reference{GVK: replicas, Namespace: xr.Namespace, Name: fmt.Sprintf("r%012d-%010d", i, n)}
	}
	composes[0].Name += strconv.Itoa(generation)
	return composes, []Requirement{
		{Step: "schedule", Name: "config", Reference: Reference{GVK: secrets, Namespace: xr.Namespace, Name: fmt.Sprintf("configuration-%010d", i)}},
		{Step: "schedule", Name: "clusters", Reference: Reference{GVK: clusters, Labels: benchLabels(i)}},
	}
}

func benchLabels(i int) map[string]string {
	return map[string]string{"fleet": "main", "pool": strconv.Itoa(i % benchSelectors)}
}

func benchTracker(xrs int) *Tracker {
	tracker := NewTracker()
	for i := range xrs {
		composes, asks := benchRecord(i, 0)
		tracker.Track(benchXR(i), composes, asks)
	}
	return tracker
}

func nsPerOp(b *testing.B) float64 {
	return float64(b.Elapsed().Nanoseconds()) / float64(b.N)
}

func BenchmarkDependants(b *testing.B) {
	composedByOne := func(xrs int) metav1.Object {
		composes, _ := benchRecord(xrs/2, 0)
		return object(composes[1].Namespace, composes[1].Name, map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"})
	}
	requiredByLabels := func(int) metav1.Object {
		return object("", "c", map[string]string{"fleet": "main", "pool": "7", "a": "1", "b": "2", "c": "3"})
	}
	// Every object of a fleet shares a pair with all selectors, and most events
	// of a busy kind match none of them.
	matchedByNone := func(int) metav1.Object {
		return object("", "c", map[string]string{"fleet": "main", "pool": "none", "a": "1", "b": "2", "c": "3"})
	}

	for _, xrs := range benchSizes {
		tracker := benchTracker(xrs)
		for _, bc := range []struct {
			name string
			obj  metav1.Object
			by   Reference
			want int
		}{
			{"by_name", composedByOne(xrs), Reference{GVK: replicas}, 1},
			{"by_labels", requiredByLabels(xrs), Reference{GVK: clusters}, xrs / benchSelectors},
			{"by_none", matchedByNone(xrs), Reference{GVK: clusters}, 0},
		} {
			var ns float64
			b.Run(fmt.Sprintf("%s/xrs=%d", bc.name, xrs), func(b *testing.B) {
				b.ReportAllocs()
				var dst []XR
				for b.Loop() {
					dst = tracker.Dependants(dst[:0], bc.by.GVK, bc.obj)
				}
				if len(dst) != bc.want {
					b.Fatalf("found %d XRs, want %d", len(dst), bc.want)
				}
				ns = nsPerOp(b)
			})
			fmt.Printf("figure dependants_%s_%d=%.0f ns\n", bc.name, xrs, ns)
		}
	}
}

func BenchmarkTrack(b *testing.B) {
	for _, xrs := range benchSizes {
		tracker := benchTracker(xrs)
		xr := benchXR(xrs / 2)
		composes, asks := benchRecord(xrs/2, 0)
		changed, _ := benchRecord(xrs/2, 1)

		for _, bc := range []struct {
			name string
			next [2][]Reference
		}{
			{"unchanged", [2][]Reference{composes, composes}},
			{"changed", [2][]Reference{changed, composes}},
		} {
			var ns float64
			b.Run(fmt.Sprintf("%s/xrs=%d", bc.name, xrs), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					tracker.Track(xr, bc.next[i%2], asks)
				}
				ns = nsPerOp(b)
			})
			fmt.Printf("figure track_%s_%d=%.0f ns\n", bc.name, xrs, ns)
		}
	}
}

// BenchmarkMemory measures what a tracker holds of each reference, strings that
// nobody else holds included.
func BenchmarkMemory(b *testing.B) {
	for _, xrs := range benchSizes {
		var perReference float64
		b.Run(fmt.Sprintf("xrs=%d", xrs), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				before := heapBytes()
				tracker := benchTracker(xrs)
				perReference = float64(heapBytes()-before) / float64(xrs*benchPerXR)
				runtime.KeepAlive(tracker)
			}
			b.ReportMetric(perReference, "B/reference")
		})
		fmt.Printf("figure tracker_memory_%d=%.0f bytes/reference\n", xrs, perReference)
	}
}

func heapBytes() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
