// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/test/soak"
	"github.com/crosswatch-io/crosswatch/test/watchserver"
)

// runs are those of all XRs.
type runs struct {
	mu      sync.Mutex
	running map[types.NamespacedName]int // guarded by mu
	count   map[types.NamespacedName]int // guarded by mu
	atOnce  int                          // of one XR; guarded by mu
}

func (r *runs) begin(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[name]++
	r.count[name]++
	r.atOnce = max(r.atOnce, r.running[name])
}

func (r *runs) end(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[name]--
}

// counted counts the runs of a reconciler.
type counted struct {
	reconcile.Reconciler

	runs *runs
}

func (c counted) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c.runs.begin(req.NamespacedName)
	defer c.runs.end(req.NamespacedName)
	return c.Reconciler.Reconcile(ctx, req)
}

// storm is one object that many XRs require, and others that one XR each requires.
type storm struct {
	*trial

	runs *runs
}

const (
	hot       = "hot"
	unrelated = 20
)

func newStorm(t *testing.T, dependants int) *storm {
	t.Helper()
	server, err := watchserver.Start(t.Context())
	must(t, err)
	s := &storm{
		trial: &trial{t: t, server: server, script: soak.NewScript(0, server)},
		runs:  &runs{running: map[types.NamespacedName]int{}, count: map[types.NamespacedName]int{}},
	}
	s.faults = newFaults(s.script, server)
	s.put("Thing", hot, "0")
	for i := range unrelated {
		s.put("Widget", strconv.Itoa(i), "0")
		s.require("Widget", strconv.Itoa(i), "unrelated-"+strconv.Itoa(i))
	}
	for i := range dependants {
		s.require("Thing", hot, "dependant-"+strconv.Itoa(i))
	}
	s.operator, err = operate(server, func(c *engine.Controller) reconcile.Reconciler { return counted{s.reconciler(c), s.runs} })
	must(t, err)
	t.Cleanup(func() {
		must(t, s.operator.stop())
		must(t, server.Close())
	})
	s.await("all XRs to say what there is", func() bool { return len(s.wrong()) == 0 })
	return s
}

func (s *storm) put(kind, name, value string) {
	s.t.Helper()
	must(s.t, change(s.server, kind, name, value))
}

func change(server *watchserver.Server, kind, name, value string) error {
	_, _, err := server.Put(soak.Thing(kind, "north", name, nil, value, ""))
	return err
}

// require makes an XR that requires one object, and writes nothing.
func (s *storm) require(kind, name, xr string) {
	s.t.Helper()
	obj := soak.Thing(soak.SilentKind, "north", xr, nil, "", "")
	obj.Object["spec"] = map[string]any{"plan": fmt.Sprintf(`{"requires":[{"kind":%q,"namespace":"north","name":%q}]}`, kind, name)}
	_, _, err := s.server.Put(obj)
	must(s.t, err)
}

func (s *storm) await(what string, ok func() bool) time.Duration {
	s.t.Helper()
	const often = time.Millisecond / 2
	began := time.Now()
	for !ok() {
		if time.Since(began) > patience {
			s.t.Fatalf("gave up waiting for %s", what)
		}
		<-time.After(often)
	}
	return time.Since(began)
}

// gust is how often the hot object was changed, and in what time.
type gust struct {
	changes int
	lasted  time.Duration
	err     error
}

// blow changes the hot object a thousand times a second for a time, as far as this
// machine can, and then tells how often that was.
func (s *storm) blow(lasts time.Duration) <-chan gust {
	over := make(chan gust, 1)
	go func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		var g gust
		for began := time.Now(); g.lasted < lasts && g.err == nil; g.lasted = time.Since(began) {
			<-ticker.C
			// A ticker drops what comes too late. The rate is made up for.
			for due := int(time.Since(began) / time.Millisecond); g.changes < due && g.err == nil; g.changes++ {
				g.err = change(s.server, "Thing", hot, strconv.Itoa(g.changes+1))
			}
		}
		over <- g
	}()
	return over
}

// latencies changes what one unrelated XR after the other requires until the storm is
// over, and returns how long they took to run, sorted.
func (s *storm) latencies(over <-chan gust) ([]time.Duration, gust) {
	s.t.Helper()
	var took []time.Duration
	for i := 0; ; i++ {
		select {
		case g := <-over:
			must(s.t, g.err)
			slices.Sort(took)
			return took, g
		default:
		}
		name := strconv.Itoa(i % unrelated)
		xr := s.server.Object(soak.GVK(soak.SilentKind), types.NamespacedName{Namespace: "north", Name: "unrelated-" + name})
		before := s.saidBy(xr)
		s.put("Widget", name, strconv.Itoa(i+1))
		took = append(took, s.await("an unrelated XR to run", func() bool { return s.saidBy(xr) != before }))
	}
}

// An object that changes a thousand times a second wakes each of its thousand
// dependants that often. They run as often as there is time for, one run of each at a
// time, and the last of them sees the last change; whoever has nothing to do with it
// is served meanwhile.
func TestAThousandChangesASecondOfWhatAThousandXRsRequireAreCoalesced(t *testing.T) {
	const dependants, lasts, soon = 1000, 3 * time.Second, 2 * time.Second
	s := newStorm(t, dependants)
	before, _ := s.runs.sum()
	latencies, gust := s.latencies(s.blow(lasts))
	settled := s.await("all XRs to say what there is", func() bool { return len(s.wrong()) == 0 })
	all, atOnce := s.runs.sum()
	runs := all - before

	p99 := latencies[len(latencies)*99/100]
	t.Logf("%d changes in %s, %d runs, the last of them %s later; %d unrelated changes: p50 %s, p99 %s",
		gust.changes, gust.lasted.Round(time.Millisecond), runs, settled.Round(time.Millisecond),
		len(latencies), latencies[len(latencies)/2].Round(time.Microsecond), p99.Round(time.Microsecond))
	if atOnce != 1 {
		t.Errorf("an XR ran %d times at once", atOnce)
	}
	if most := gust.changes * dependants / 2; runs-len(latencies) > most {
		t.Errorf("%d runs for %d changes of %d XRs: hardly any was coalesced", runs, gust.changes, dependants)
	}
	if p99 > soon {
		t.Errorf("unrelated XRs take %s, want %s at most", p99, soon)
	}
}

// sum is how many runs there were, and the most of one XR at once.
func (r *runs) sum() (all, atOnce int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range maps.Values(r.count) {
		all += n
	}
	return all, r.atOnce
}
