// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// XRDs and kinds that come and go leave nothing behind: 200 times, or 1,000 in a
// soak test.
func TestSoakNothingGrowsWhileXRDsAndKindsComeAndGo(t *testing.T) {
	cycles := 200
	if os.Getenv("SOAK") != "" {
		cycles = 1000
	}
	w := newWorld(t, admin)
	absent := kindOf(define("Absent", "Cluster"), "v1")
	names := 0 // no XRD comes again
	cycle := func(i int) {
		names++
		name := "xrs-" + strconv.Itoa(names)
		c := w.start(name, leases)
		depend(c, name)
		_, err := c.Require(t.Context(), someXR, requires(named(configMaps, "default", "a")))
		must(t, err)
		if _, err := c.Require(t.Context(), someXR, requires(named(absent, "", "a"))); err == nil {
			t.Fatal("a kind is watched that is not there")
		}
		if i%2 == 0 {
			c.Forget(someXR)
			w.engine.Sweep()
			w.state(configMaps, "")
		}
		w.engine.Remove(name)
		for len(w.woken) > 0 {
			<-w.woken
		}
	}
	for i := range 20 {
		cycle(i)
	}
	before := weigh()
	for i := range cycles {
		cycle(i)
	}
	if got := w.engine.Watches(); len(got) > 0 {
		t.Errorf("there are watches in service: %v", got)
	}
	var after weight
	w.eventually(func() bool {
		after = weigh()
		return after.goroutines <= before.goroutines+5
	}, func() string {
		return "goroutines: " + strconv.Itoa(before.goroutines) + ", then " + strconv.Itoa(after.goroutines)
	})
	// Of a controller's name, controller-runtime and its queue keep their own
	// series for as long as the process runs: about 13 KiB, or 20 with the race
	// detector. A record that was kept would take more than twice that.
	slack := uint64(2<<20 + cycles*24<<10)
	if after.heap > before.heap+slack {
		t.Errorf("the heap grew from %d to %d bytes", before.heap, after.heap)
	}
	t.Logf("after %d cycles: goroutines %d -> %d, heap %d -> %d", cycles, before.goroutines, after.goroutines, before.heap, after.heap)
}

// depend records so much that it weighs if it is kept.
func depend(c *engine.Controller, name string) {
	for i := range 100 {
		xr := types.NamespacedName{Namespace: name, Name: strconv.Itoa(i)}
		c.Track(xr, nil, []dependency.Requirement{requires(named(leases, name, xr.Name))})
	}
}

type weight struct {
	goroutines int
	heap       uint64
}

func weigh() weight {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return weight{goroutines: runtime.NumGoroutine(), heap: stats.HeapAlloc}
}
