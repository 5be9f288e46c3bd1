// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"strconv"
	"sync"
	"testing"
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

// A reference that the old and the new record have in common is found at every
// moment of a Track.
func TestTrackNeverLosesWhatStays(t *testing.T) {
	stays := []Reference{cluster("stays"), {GVK: clusters, Labels: map[string]string{"stays": "true", "zone": "1"}}, {GVK: replicas}}
	odd := append([]Reference{cluster("odd")}, stays...)
	even := append([]Reference{cluster("even")}, stays...)
	tracker := NewTracker()
	tracker.Track(app, odd, nil)

	var reading sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if !holdsAll(tracker) {
					t.Error("a reference in the old and in the new record was not found")
					return
				}
			}
		})
	}
	for i := range 500 {
		next := odd
		if i%2 == 0 {
			next = even
		}
		tracker.Depend(app, next[1])
		tracker.Track(app, next, nil)
	}
	close(done)
	reading.Wait()
}

func holdsAll(tracker *Tracker) bool {
	return len(tracker.Dependants(nil, clusters, object("", "stays", nil))) == 1 &&
		len(tracker.Dependants(nil, clusters, object("", "x", map[string]string{"stays": "true", "zone": "1"}))) == 1 &&
		len(tracker.Dependants(nil, replicas, object("a", "x", nil))) == 1
}

// An XR that refers to an object all the time, now by one reference and now by
// another, is found at every moment, however many searches read in batches.
func TestDependantsMissesNoneThatMoves(t *testing.T) {
	const xrs, rounds = 20, 300
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

	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		reading.Go(func() {
			var dst []XR
			for {
				select {
				case <-done:
					return
				default:
				}
				if dst = tracker.Dependants(dst[:0], clusters, obj); len(dst) != xrs {
					t.Errorf("%d XRs were found, want all %d", len(dst), xrs)
					return
				}
				if dst = tracker.DependantsOfKind(dst[:0], clusters); len(dst) != xrs {
					t.Errorf("%d XRs were found by kind, want all %d", len(dst), xrs)
					return
				}
			}
		})
	}
	for w := range 2 {
		writing.Go(func() {
			for round := range rounds {
				for i := w; i < xrs; i += 2 {
					tracker.Track(XR{Name: strconv.Itoa(i)}, ways[(i+round)%len(ways)], nil)
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
}
