// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The benchmarks print their figures as lines of their own:
//
//	make bench-tracker | grep ^figure

// Each XR composes ten resources, and requires one object by name and others by
// one of a thousand selectors. Names are unique, and 24 characters long.
const (
	benchComposed  = 10
	benchSelectors = 1000
	benchPerXR     = benchComposed + 2
)

var benchSizes = []int{10_000, 100_000}

// A generation of XRs shares nothing with another but namespaces and selectors.
type generation int

func (g generation) name(of string, i int) string {
	return fmt.Sprintf("%s%04d%0*d", of, g, 20-len(of), i)
}

func (g generation) xr(i int) XR {
	return XR{Namespace: "team-" + strconv.Itoa(i%100), Name: g.name("application-", i)}
}

func (g generation) record(i int) ([]Reference, []Requirement) {
	namespace := g.xr(i).Namespace
	composes := make([]Reference, benchComposed)
	for n := range composes {
		composes[n] = Reference{GVK: replicas, Namespace: namespace, Name: g.name("replica-", i*benchComposed+n)}
	}
	return composes, []Requirement{
		{Step: "schedule", Name: "config", Reference: Reference{GVK: secrets, Namespace: namespace, Name: g.name("configuration-", i)}},
		{Step: "schedule", Name: "clusters", Reference: Reference{GVK: clusters, Labels: benchLabels(i % benchSelectors)}},
	}
}

func (g generation) track(tracker *Tracker, xrs int) {
	for i := range xrs {
		composes, requires := g.record(i)
		tracker.Track(g.xr(i), composes, requires)
	}
}

func benchLabels(selector int) map[string]string {
	return map[string]string{"fleet": "main", "pool": strconv.Itoa(selector)}
}

// benchObject is one of the kind that is required by labels. It has five of them.
func benchObject(pool string) metav1.Object {
	return object("", "c", map[string]string{"fleet": "main", "pool": pool, "a": "1", "b": "2", "c": "3"})
}

func benchTracker(xrs int) *Tracker {
	tracker := NewTracker()
	generation(0).track(tracker, xrs)
	return tracker
}

// figure runs a benchmark and prints what it returns.
func figure(b *testing.B, name, unit string, run func(b *testing.B) float64) {
	var value float64
	ran := false
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		value, ran = run(b), true
	})
	if ran {
		fmt.Printf("figure %s=%.4g %s\n", name, value, unit)
	}
}

func microseconds(b *testing.B) float64 {
	return float64(b.Elapsed().Nanoseconds()) / float64(b.N) / 1000
}

func BenchmarkDependants(b *testing.B) {
	for _, xrs := range benchSizes {
		tracker := benchTracker(xrs)
		// One XR has a selector of its own, and others share one.
		const sharing = 1000
		tracker.Require(XR{Name: "alone"}, Requirement{Reference: Reference{GVK: clusters, Labels: benchLabels(benchSelectors)}})
		for i := range sharing {
			tracker.Require(generation(0).xr(i), Requirement{Reference: Reference{GVK: clusters, Labels: map[string]string{"shared": "true"}}})
		}
		composes, _ := generation(0).record(xrs / 2)

		for _, bc := range []struct {
			name string
			kind Reference
			obj  metav1.Object
			want int
		}{
			{"by_name", composes[1], object(composes[1].Namespace, composes[1].Name, benchObject("none").GetLabels()), 1},
			{"by_labels_one", Reference{GVK: clusters}, benchObject(strconv.Itoa(benchSelectors)), 1},
			{"by_labels_thousandth", Reference{GVK: clusters}, benchObject("7"), xrs / benchSelectors},
			{"by_labels_thousand", Reference{GVK: clusters}, object("", "c", map[string]string{"shared": "true", "a": "1", "b": "2", "c": "3", "d": "4"}), sharing},
			// Every object of a fleet shares a pair with all selectors, and most
			// events of a busy kind match none of them.
			{"by_labels_none", Reference{GVK: clusters}, benchObject("none"), 0},
		} {
			figure(b, fmt.Sprintf("dependants_%s_%d", bc.name, xrs), "us", func(b *testing.B) float64 {
				var dst []XR
				for b.Loop() {
					dst = tracker.Dependants(dst[:0], bc.kind.GVK, bc.obj)
				}
				if len(dst) != bc.want {
					b.Fatalf("found %d XRs, want %d", len(dst), bc.want)
				}
				return microseconds(b)
			})
		}
	}
}

// tracked are the arguments of a Track.
type tracked struct {
	xr       XR
	composes []Reference
	requires []Requirement
}

// benchChanges returns what some of the XRs were tracked with, and the same with
// one composed resource changed.
func benchChanges(xrs, some int) (unchanged, changed []tracked) {
	for _, i := range rand.Perm(xrs)[:some] {
		t := tracked{xr: generation(0).xr(i)}
		t.composes, t.requires = generation(0).record(i)
		unchanged = append(unchanged, t)
		t.composes = slices.Clone(t.composes)
		t.composes[benchComposed/2].Name = generation(1).name("replica-", i)
		changed = append(changed, t)
	}
	return unchanged, changed
}

// BenchmarkTrack tracks one XR again and again, then lets a thousand take turns, and
// then so many that what is known of each, and what it is tracked with, comes from
// memory and not from a processor's cache.
func BenchmarkTrack(b *testing.B) {
	for _, xrs := range benchSizes {
		tracker := benchTracker(xrs)
		for _, bc := range []struct {
			name string
			some int
		}{
			{"_one", 1},
			{"", 1000},
			{"_uncached", 10_000},
		} {
			unchanged, changed := benchChanges(xrs, bc.some)
			track := func(b *testing.B, of ...[]tracked) float64 {
				for i := 0; b.Loop(); i++ {
					t := &of[i/bc.some%len(of)][i%bc.some]
					tracker.Track(t.xr, t.composes, t.requires)
				}
				return microseconds(b)
			}
			figure(b, fmt.Sprintf("track_unchanged%s_%d", bc.name, xrs), "us", func(b *testing.B) float64 {
				return track(b, unchanged)
			})
			figure(b, fmt.Sprintf("track_changed%s_%d", bc.name, xrs), "us", func(b *testing.B) float64 {
				return track(b, changed, unchanged)
			})
		}
	}
}

// BenchmarkContention measures what Dependants takes for eight goroutines that do
// nothing else while another changes records without a pause, and how many changes
// that one gets done.
func BenchmarkContention(b *testing.B) {
	const readers, xrs = 8, 100_000
	tracker := benchTracker(xrs)
	unchanged, changed := benchChanges(xrs, 1000)
	obj := benchObject("7")

	var changes float64
	figure(b, "dependants_contended_p99", "us", func(b *testing.B) float64 {
		done := make(chan struct{})
		var writing, reading sync.WaitGroup
		writing.Go(func() {
			changes = 0
			for next := changed; ; next, changed, unchanged = unchanged, unchanged, changed {
				for _, t := range next {
					select {
					case <-done:
						return
					default:
					}
					tracker.Track(t.xr, t.composes, t.requires)
					changes++
				}
			}
		})

		b.ResetTimer()
		took := make([][]time.Duration, readers)
		for r := range readers {
			reading.Go(func() {
				var dst []XR
				for range b.N/readers + 1 {
					start := time.Now()
					dst = tracker.Dependants(dst[:0], clusters, obj)
					took[r] = append(took[r], time.Since(start))
				}
			})
		}
		reading.Wait()
		b.StopTimer()
		close(done)
		writing.Wait()
		changes /= b.Elapsed().Seconds()

		all := slices.Sorted(func(yield func(time.Duration) bool) {
			for _, some := range took {
				for _, d := range some {
					if !yield(d) {
						return
					}
				}
			}
		})
		return float64(all[len(all)*99/100].Nanoseconds()) / 1000
	})
	if changes > 0 {
		fmt.Printf("figure track_contended=%.4g /s\n", changes)
	}
}

// BenchmarkMemory measures what a tracker holds of each reference, strings that
// nobody else holds included, and by how much that grows when every XR goes and
// another comes in its place, ten times over.
func BenchmarkMemory(b *testing.B) {
	const churns = 10
	for _, xrs := range benchSizes {
		references := float64(xrs * benchPerXR)
		var grown float64
		measured := false
		figure(b, fmt.Sprintf("tracker_memory_%d", xrs), "bytes/reference", func(b *testing.B) float64 {
			var fresh, churned int64
			for b.Loop() {
				before := heapBytes()
				tracker := benchTracker(xrs)
				fresh = heapBytes() - before
				for g := range generation(churns) {
					for i := range xrs {
						composes, requires := (g + 1).record(i)
						tracker.Track((g + 1).xr(i), composes, requires)
						tracker.Forget(g.xr(i))
					}
				}
				churned = heapBytes() - before
				runtime.KeepAlive(tracker)
			}
			grown, measured = float64(churned-fresh)/references, true
			return float64(fresh) / references
		})
		if measured {
			fmt.Printf("figure tracker_growth_%d=%.4g bytes/reference\n", xrs, grown)
		}
	}
}

func heapBytes() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one only found to be gone, as of a sync.Pool
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
