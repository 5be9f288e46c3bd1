// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// options are those of a controller whose XRs each require what require says.
func options(kind schema.GroupVersionKind, require func(ctx context.Context, c *engine.Controller, xr types.NamespacedName)) engine.ControllerOptions {
	return engine.ControllerOptions{
		Kind:                    kind,
		MaxConcurrentReconciles: 4,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second),
		Reconciler: func(c *engine.Controller) reconcile.Reconciler {
			return reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				require(ctx, c, r.NamespacedName)
				return reconcile.Result{}, nil
			})
		},
	}
}

func TestAControllerCanBeStoppedWhileItsRunsWaitForAWatch(t *testing.T) {
	f := newFault(hang, "/configmaps")
	w := newWorld(t, through(f.wrap))
	waiting := make(chan struct{}, 1)
	c, err := w.engine.Start("xrs", options(leases, func(ctx context.Context, c *engine.Controller, xr types.NamespacedName) {
		waiting <- struct{}{}
		_, _ = c.Require(ctx, xr, requires(named(configMaps, "default", "a")))
	}))
	must(t, err)
	c.Enqueue(someXR)
	<-waiting

	begin := time.Now()
	w.engine.Stop("xrs")
	if took := time.Since(begin); took > 500*time.Millisecond {
		t.Errorf("the stop took %s", took)
	}
	if got := w.engine.Watches(); len(got) != 0 {
		t.Errorf("there are watches in service: %v", got)
	}
}

func TestAControllerThatDoesNotRunYetPutsNoWatchIntoService(t *testing.T) {
	w := newWorld(t, admin)
	o := options(leases, func(context.Context, *engine.Controller, types.NamespacedName) {})
	reconciler := o.Reconciler
	o.Reconciler = func(c *engine.Controller) reconcile.Reconciler {
		if _, err := c.Require(t.Context(), someXR, requires(named(configMaps, "default", "a"))); err == nil {
			t.Error("a controller that does not run was given something to read from")
		}
		return reconciler(c)
	}
	_, err := w.engine.Start("xrs", o)
	must(t, err)
	for _, info := range w.engine.Watches() {
		if info.GVK != leases {
			t.Errorf("there is a watch in service of %s", info.GVK)
		}
	}
}

// Whoever wins, none runs beside another of its name, nor out of reach.
func TestStartsAndStopsThatRaceLeaveOneControllerOrNone(t *testing.T) {
	w := newWorld(t, admin)
	var running sync.Map // name of the XR kind to the controller whose run is under way
	o := func(kind schema.GroupVersionKind) engine.ControllerOptions {
		return options(kind, func(_ context.Context, c *engine.Controller, xr types.NamespacedName) {
			if other, loaded := running.LoadOrStore("xrs", c); loaded && other != c {
				t.Error("two controllers of one name run at once")
			}
			_, _ = c.Begin(xr)
			running.CompareAndDelete("xrs", c)
		})
	}
	for range 20 {
		var racing sync.WaitGroup
		for _, race := range []func(){
			func() { _, _ = w.engine.Start("xrs", o(leases)) },
			func() { _, _ = w.engine.Start("xrs", o(configMaps)) },
			func() { w.engine.Stop("xrs") },
			func() { w.engine.Remove("xrs") },
			func() {
				if c, ok := w.engine.Controller("xrs"); ok {
					_, _ = c.Require(t.Context(), someXR, requires(named(secrets, "default", "a")))
				}
			},
			w.engine.Sweep,
		} {
			racing.Go(race)
		}
		racing.Wait()
		if n := len(w.engine.Controllers()); n > 1 {
			t.Fatalf("%d controllers of one name run", n)
		}
	}
	w.engine.Stop("xrs")
	if got := w.engine.Watches(); len(got) != 0 {
		t.Errorf("there are watches in service: %v", got)
	}
}

// Case S12: however starts, stops, sweeps, faults and references meet, every kind
// that is referred to ends watched, or reported with the state that it deserves.
func TestS12EveryTrackedKindEndsWatchedOrReported(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("SEED=%d", seed)
	for round := range uint64(5) {
		t.Run(strconv.FormatUint(round, 10), func(t *testing.T) { race(t, seed+round) })
	}
}

// racers is how many goroutines do what they like at once, and deeds how often
// each.
const racers, deeds = 4, 60

func race(t *testing.T, seed uint64) {
	t.Helper()
	f := newFault(status(http.StatusServiceUnavailable), "/configmaps", "/secrets", "/leases", "/api/v1", "/apis/coordination.k8s.io/v1")
	f.over.Store(true)
	cfg, grant := limited(t, "s12")
	cfg.Wrap(f.wrap)
	w := newWorld(t, cfg)
	grant("", "configmaps", "list", "watch")
	grant("", "secrets", "list", "watch")
	grant("coordination.k8s.io", "leases", "list", "watch")
	want := map[schema.GroupVersionKind]engine.State{
		configMaps: engine.Active, secrets: engine.Active, leases: engine.Active,
		{Version: "v1", Kind: "Pod"}:                                 engine.Forbidden,
		{Group: "absent.example.org", Version: "v1", Kind: "Widget"}: engine.NotFound,
	}
	var kinds []schema.GroupVersionKind
	for kind := range want {
		kinds = append(kinds, kind)
	}

	r := &racer{w: w, fault: f, kinds: kinds}
	var racing sync.WaitGroup
	for i := range uint64(racers) {
		racing.Go(func() {
			random := rand.New(rand.NewPCG(seed, i))
			for range deeds {
				r.act(random)
			}
		})
	}
	racing.Wait()
	f.over.Store(true)

	r.start("a", leases)
	r.start("b", configMaps)
	var diff string
	w.eventually(func() bool {
		w.engine.Sweep()
		deserved, got := map[schema.GroupVersionKind]engine.State{}, map[schema.GroupVersionKind]engine.State{}
		for _, c := range w.engine.Controllers() {
			for _, kind := range append(c.Tracker().GVKs(), c.Kind()) {
				deserved[kind] = want[kind]
			}
		}
		for _, info := range w.engine.Watches() {
			got[info.GVK] = info.State
		}
		diff = cmp.Diff(deserved, got)
		return diff == ""
	}, func() string { return "watches of the kinds that are tracked (-want +got):\n" + diff })
}

// racer does, each time, one thing that changes what is watched.
type racer struct {
	w     *world
	fault *fault
	kinds []schema.GroupVersionKind
}

func (r *racer) act(random *rand.Rand) {
	name := []string{"a", "b", "c"}[random.IntN(3)]
	kind := r.kinds[random.IntN(len(r.kinds))]
	xr := types.NamespacedName{Namespace: "default", Name: strconv.Itoa(random.IntN(5))}
	c, running := r.w.engine.Controller(name)
	switch deed := random.IntN(12); {
	case deed == 0:
		r.w.engine.Stop(name)
	case deed == 1:
		r.w.engine.Remove(name)
	case deed == 2 || !running:
		r.start(name, []schema.GroupVersionKind{leases, configMaps, secrets}[random.IntN(3)])
	case deed == 3:
		r.w.engine.Sweep()
	case deed == 4:
		r.w.engine.KindChanged(schema.GroupResource{Group: kind.Group, Resource: "widgets"})
	case deed == 5:
		r.w.engine.RulesChanged()
	case deed == 6:
		r.fault.over.Store(random.IntN(2) == 0)
	case deed == 7:
		c.Track(xr, nil, nil)
	case deed < 10:
		c.Enqueue(xr)
	default:
		ctx, cancel := context.WithTimeout(r.w.t.Context(), time.Duration(random.IntN(50))*time.Millisecond)
		defer cancel()
		_, _ = c.Require(ctx, xr, requires(named(kind, "default", "a")))
	}
}

// start starts a controller whose XRs each depend on a kind.
func (r *racer) start(name string, kind schema.GroupVersionKind) {
	_, _ = r.w.engine.Start(name, options(kind, func(ctx context.Context, c *engine.Controller, xr types.NamespacedName) {
		i, _ := strconv.Atoi(xr.Name)
		_, _ = c.Depend(ctx, xr, dependency.Reference{GVK: r.kinds[i%len(r.kinds)], Namespace: "default", Name: "a"})
		c.Fail(xr)
	}))
}
