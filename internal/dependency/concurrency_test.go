// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"strconv"
	"sync"
	"testing"
	"time"
)

// Each XR has one writer, as in life, and everybody reads.
func TestConcurrentUse(t *testing.T) {
	const writers, readers, rounds = 4, 2, 100
	tracker := NewTracker()

	var writing, reading sync.WaitGroup
	for i := range writers {
		writing.Go(func() { live(tracker, XR{Namespace: "apps", Name: strconv.Itoa(i)}, rounds) })
	}
	done := make(chan struct{})
	for range readers {
		reading.Go(func() { readUntil(tracker, done) })
	}
	writing.Wait()
	close(done)
	reading.Wait()

	nothingLeft(t, tracker)
}

// live is the life of one XR: runs that end in every way, over references that
// others hold as well.
func live(tracker *Tracker, xr XR, rounds int) {
	ready := Requirement{Step: "one", Name: "ready", Reference: Reference{GVK: clusters, Labels: map[string]string{"ready": "true", "zone": "1"}}}
	all := Requirement{Step: "one", Name: "all", Reference: Reference{GVK: replicas}}
	for i := range rounds {
		mine := Reference{GVK: replicas, Namespace: xr.Namespace, Name: xr.Name + strconv.Itoa(i%3)}
		tracker.Require(xr, ready)
		tracker.Depend(xr, mine)
		switch i % 4 {
		case 0:
			tracker.Track(xr, []Reference{mine}, []Requirement{ready})
		case 1:
			tracker.Track(xr, []Reference{mine}, []Requirement{ready, all})
		case 2:
			tracker.Fail(xr)
		case 3:
			tracker.Forget(xr)
		}
	}
	tracker.Forget(xr)
}

func readUntil(tracker *Tracker, done <-chan struct{}) {
	var dst []XR
	obj := object("", "c", map[string]string{"ready": "true", "zone": "1"})
	for {
		select {
		case <-done:
			return
		default:
		}
		dst = tracker.Dependants(dst[:0], clusters, obj)
		for _, xr := range dst {
			tracker.Requirements(xr, "one")
		}
		dst = tracker.DependantsOfKind(dst[:0], replicas)
		tracker.HasKind(clusters)
		tracker.GVKs()
		tracker.Stats()
	}
}

// enough is how often readers look while records change.
const enough = 2000

// lookWhile lets two goroutines look again and again while records change, until
// each of them has looked often enough.
func lookWhile(look func() bool, change ...func(round int)) {
	var reading, writing sync.WaitGroup
	done := make(chan struct{})
	for _, change := range change {
		writing.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-done:
					return
				default:
					change(round)
				}
			}
		})
	}
	for range 2 {
		reading.Go(func() {
			for range enough {
				if !look() {
					return
				}
			}
		})
	}
	reading.Wait()
	close(done)
	writing.Wait()
}

// A reference that the old and the new record have in common is found at every
// moment of a Track.
func TestTrackNeverLosesWhatStays(t *testing.T) {
	stays := []Reference{cluster("stays"), {GVK: clusters, Labels: map[string]string{"stays": "true", "zone": "1"}}, {GVK: replicas}}
	ways := [][]Reference{
		append([]Reference{cluster("odd")}, stays...),
		append([]Reference{cluster("even")}, stays...),
	}
	tracker := NewTracker()
	tracker.Track(app, ways[0], nil)

	lookWhile(func() bool {
		if !holdsAll(tracker) {
			t.Error("a reference in the old and in the new record was not found")
			return false
		}
		return true
	}, func(round int) {
		next := ways[round%2]
		tracker.Depend(app, next[1])
		tracker.Track(app, next, nil)
	})
}

func holdsAll(tracker *Tracker) bool {
	return len(tracker.Dependants(nil, clusters, object("", "stays", nil))) == 1 &&
		len(tracker.Dependants(nil, clusters, object("", "x", map[string]string{"stays": "true", "zone": "1"}))) == 1 &&
		len(tracker.Dependants(nil, replicas, object("a", "x", nil))) == 1
}

// An XR that refers to an object all the time, now by one reference and now by
// another, is found at every moment, in however many batches searches read.
func TestDependantsMissesNoneThatMoves(t *testing.T) {
	const xrs = 20
	ways := [][]Reference{
		{{GVK: clusters}},
		{cluster("c")},
		{{GVK: clusters, Labels: map[string]string{"p": "1"}}},
		{{GVK: clusters, Labels: map[string]string{"q": "1"}}},
		{{GVK: clusters, Labels: map[string]string{"p": "1", "q": "1"}}},
	}
	obj := object("", "c", map[string]string{"p": "1", "q": "1"})
	tracker := NewTracker()
	tracker.batch = 2
	for i := range xrs {
		tracker.Track(XR{Name: strconv.Itoa(i)}, ways[0], nil)
	}

	lookWhile(func() bool {
		if n := len(tracker.Dependants(nil, clusters, obj)); n != xrs {
			t.Errorf("%d XRs were found, want all %d", n, xrs)
			return false
		}
		if n := len(tracker.DependantsOfKind(nil, clusters)); n != xrs {
			t.Errorf("%d XRs were found by kind, want all %d", n, xrs)
			return false
		}
		return true
	}, func(round int) {
		tracker.Track(XR{Name: strconv.Itoa(round % xrs)}, ways[round/xrs%len(ways)], nil)
	}, func(round int) {
		// The last of the records, which no first batch reads.
		tracker.Track(XR{Name: strconv.Itoa(xrs - 1 - round%2)}, ways[round%len(ways)], nil)
	})
}

// What a run of an XR does that depends on the same as before, and an event, need
// no more than the lock that readers share.
func TestNothingWaitsForReaders(t *testing.T) {
	tracker := NewTracker()
	composes, requires := generation(0).record(7)
	xr := generation(0).xr(7)
	tracker.Track(xr, composes, requires)

	tracker.mu.RLock()
	defer tracker.mu.RUnlock()
	for what, run := range map[string]func(){
		"Track":            func() { tracker.Track(xr, composes, requires) },
		"Depend":           func() { tracker.Depend(xr, composes[3]) },
		"Require":          func() { tracker.Require(xr, requires[1]) },
		"Requirements":     func() { tracker.Requirements(xr, "schedule") },
		"Dependants":       func() { tracker.Dependants(nil, clusters, benchObject("7")) },
		"DependantsOfKind": func() { tracker.DependantsOfKind(nil, clusters) },
		"HasKind":          func() { tracker.HasKind(clusters) },
		"GVKs":             func() { tracker.GVKs() },
		"Stats":            func() { tracker.Stats() },
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			run()
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s waits for a reader", what)
		}
	}
}
