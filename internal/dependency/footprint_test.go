// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The estimate and the heap differ by no more than this factor, whatever the
// tracker holds.
const bytesFactor = 1.2

func TestBytesFollowTheHeap(t *testing.T) {
	const xrs = 10_000
	numbered := func(prefix string, i int) string { return fmt.Sprintf("%s-%010d", prefix, i) }
	named := func(gvk schema.GroupVersionKind, i int) Reference {
		return Reference{GVK: gvk, Namespace: generation(0).xr(i).Namespace, Name: numbered("object", i)}
	}
	cases := map[string]func(i int) ([]Reference, []Requirement){
		"Mixed":   func(i int) ([]Reference, []Requirement) { return generation(0).record(i) },
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
		"RequiredByTwo": func(i int) ([]Reference, []Requirement) {
			return nil, []Requirement{{Step: "one", Name: "shared", Reference: named(clusters, i/2)}}
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
				tracker.Track(generation(0).xr(i), composes, requires)
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

// An event of an object is a question, which nothing remembers.
func TestMatchedObjectsTakeNoMemory(t *testing.T) {
	const objects = 20_000
	tracker := NewTracker()
	tracker.Track(app, nil, []Requirement{
		{Step: "one", Name: "all", Reference: Reference{GVK: replicas}},
		{Step: "one", Name: "ready", Reference: Reference{GVK: replicas, Labels: map[string]string{"ready": "true"}}},
		{Step: "one", Name: "here", Reference: Reference{GVK: replicas, Namespace: "apps", Labels: map[string]string{"ready": "true"}}},
	})
	var dst []XR
	match := func(of string) {
		for i := range objects {
			labels := map[string]string{"ready": "true", "of": of, "id": strconv.Itoa(i)}
			obj := object("apps", of+strconv.Itoa(i), labels)
			if dst = tracker.Dependants(dst[:0], replicas, obj); len(dst) != 1 {
				t.Fatalf("%d XRs depend on object %d, want 1", len(dst), i)
			}
		}
	}
	match("the first")
	heap, estimate := heapBytes(), tracker.Stats().Bytes
	match("others")
	grown := heapBytes() - heap
	runtime.KeepAlive(tracker)

	same(t, "bytes by its own count", estimate, tracker.Stats().Bytes)
	if perObject := float64(grown) / objects; perObject > 1 {
		t.Errorf("each object that matched took %.1f bytes, want none", perObject)
	}
}

// XRs come and go, with names of other lengths and other selectors each time, and
// the tracker takes what the present ones need.
func TestChurnTakesNoMemory(t *testing.T) {
	const xrs, generations = 500, 60
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string { return fmt.Sprintf("%0*d", 1+random.IntN(60), random.Int64()) }
	track := func(tracker *Tracker, xr XR) {
		var composes []Reference
		for range random.IntN(10) {
			composes = append(composes, Reference{GVK: replicas, Namespace: "team-" + strconv.Itoa(random.IntN(20)), Name: text()})
		}
		tracker.Track(xr, composes, []Requirement{
			{Step: "one", Name: text(), Reference: cluster("shared-" + strconv.Itoa(random.IntN(50)))},
			{Step: "one", Name: "own", Reference: Reference{GVK: clusters, Labels: map[string]string{"owner": text(), "fleet": "main"}}},
		})
	}

	before := heapBytes()
	tracker := NewTracker()
	heap := func() int64 { return heapBytes() - before }
	var present []XR
	for range xrs {
		present = append(present, XR{Namespace: text(), Name: text()})
		track(tracker, present[len(present)-1])
	}
	turn := func() {
		for i := range present {
			if random.IntN(2) == 0 {
				tracker.Forget(present[i])
				present[i] = XR{Namespace: text(), Name: text()}
			}
			track(tracker, present[i])
		}
	}
	for range generations / 10 {
		turn() // to the most that random records come to
	}
	settled := heap()
	for range generations {
		turn()
	}
	if now := heap(); float64(now) > 1.1*float64(settled) {
		t.Errorf("after %d generations the tracker takes %d bytes, before them %d", generations, now, settled)
	}
	sets := 0
	for _, n := range []uint32{tracker.index.entries.holders.sets.len, tracker.index.pairs.filed.sets.len, tracker.index.kinds.dependants.sets.len} {
		sets += int(n)
	}
	if most := 2 * 55; sets > most { // 50 shared clusters, and kinds and pairs that all have
		t.Errorf("%d sets were made, want at most %d", sets, most)
	}
	runtime.KeepAlive(tracker)
}

// A reference that was shared and is no longer takes what one takes that never was.
func TestSharingLeavesNothing(t *testing.T) {
	const xrs = 1000
	tracker := NewTracker()
	generation(0).track(tracker, xrs)
	before := tracker.Stats().Bytes
	for i := range xrs {
		composes, requires := generation(0).record(i)
		other := generation(1).xr(i)
		tracker.Track(other, composes, requires)
		tracker.Forget(other)
	}
	if after := tracker.Stats().Bytes; float64(after) > 1.02*float64(before) {
		t.Errorf("the tracker takes %d bytes, and took %d before references were shared", after, before)
	}
}

// What is kept of a text that is a part of a large one is not the large one.
func TestTextsAreCopied(t *testing.T) {
	large := strings.Repeat("a/b/c/", 1000)
	part := func(i int) string { return large[2*i : 2*i+1] }
	tracker := NewTracker()
	tracker.Track(XR{Namespace: part(0), Name: part(1)}, []Reference{{
		GVK:       schema.GroupVersionKind{Group: part(0), Version: part(1), Kind: part(2)},
		Namespace: part(0), Name: part(2),
	}}, nil)

	first := uintptr(unsafe.Pointer(unsafe.StringData(large)))
	own := func(what, held string) {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(held))); at >= first && at < first+uintptr(len(large)) {
			t.Errorf("the %s is a part of a large text", what)
		}
	}
	gvk := tracker.GVKs()[0]
	own("group", gvk.Group)
	own("version", gvk.Version)
	own("kind", gvk.Kind)
	xr := tracker.DependantsOfKind(nil, gvk)[0]
	own("XR's namespace", xr.Namespace)
	own("XR's name", xr.Name)
	name, _ := tracker.index.names.find(part(2))
	own("object's name", tracker.index.names.get(name))
}

// Case M1.
func TestManyThatWentLeaveNothing(t *testing.T) {
	tracker := NewTracker()
	empty := tracker.Stats().Bytes
	const xrs = 10_000
	generation(0).track(tracker, xrs)
	for i := range xrs {
		tracker.Forget(generation(0).xr(i))
	}
	same(t, "bytes", empty, tracker.Stats().Bytes)
	nothingLeft(t, tracker)
}

// The normal case of a run and of an event takes no memory.
func TestNothingIsAllocated(t *testing.T) {
	tracker := NewTracker()
	generation(0).track(tracker, 1000)
	xr := generation(0).xr(7)
	composes, requires := generation(0).record(7)
	named := object(composes[0].Namespace, composes[0].Name, nil)
	labelled := benchObject("7")
	dst := make([]XR, 0, 10)
	few := schema.GroupVersionKind{Kind: "Few"}
	tracker.Depend(app, Reference{GVK: few, Name: "a"})

	for what, run := range map[string]func(){
		"Track":               func() { tracker.Track(xr, composes, requires) },
		"Depend":              func() { tracker.Depend(xr, composes[3]) },
		"Require by name":     func() { tracker.Require(xr, requires[0]) },
		"Require by labels":   func() { tracker.Require(xr, requires[1]) },
		"Dependants by name":  func() { dst = tracker.Dependants(dst[:0], replicas, named) },
		"Dependants by label": func() { dst = tracker.Dependants(dst[:0], clusters, labelled) },
		"DependantsOfKind":    func() { dst = tracker.DependantsOfKind(dst[:0], few) },
		"HasKind":             func() { tracker.HasKind(clusters) },
	} {
		if n := testing.AllocsPerRun(1000, run); n > 0 {
			t.Errorf("%s allocates %.0f times", what, n)
		}
	}
}
