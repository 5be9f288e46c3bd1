// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/test/soak"
	"github.com/crosswatch-io/crosswatch/test/watchserver"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// patience is how long after the last change an XR may say what it shouldn't: longer
// than any pause between two attempts of a watch.
const patience = time.Minute

// trial is one run: a script and the operator it tries.
type trial struct {
	t        *testing.T
	seed     uint64
	script   *soak.Script
	faults   *faults
	server   *watchserver.Server
	operator *operator
	said     sync.Map
	patience time.Duration
	until    time.Time
	rests    int
	resting  time.Duration
	missed   int
	// foundBefore is what the checker had found when the soak began.
	foundBefore int
}

func TestTheEngineMissesNothing(t *testing.T) {
	soakEngine(t, soak.Seed(t), 20*time.Second)
}

func TestSoakTheEngine(t *testing.T) {
	soakEngine(t, soak.Seed(t), soak.Time(t))
}

func soakEngine(t *testing.T, seed uint64, length time.Duration) {
	s := newTrial(t, seed)
	defer s.end()
	s.until = time.Now().Add(length)
	for s.goesOn() {
		s.stretch()
		s.rest()
	}
	for _, what := range s.wrong() {
		t.Error(what)
	}
	if s.missed > 0 {
		t.Errorf("%d XRs missed a change", s.missed)
	}
}

// foundByChecker returns how many XRs the checker found, ever, that were not woken.
func foundByChecker(t *testing.T) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	var sum float64
	for _, family := range families {
		if family.GetName() == "crosswatch_missed_changes_total" {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return int(sum)
}

func newTrial(t *testing.T, seed uint64) *trial {
	t.Helper()
	server, err := watchserver.Start(t.Context())
	must(t, err)
	s := &trial{t: t, seed: seed, server: server, script: soak.NewScript(seed, server), patience: patience, foundBefore: foundByChecker(t)}
	s.faults = newFaults(s.script, server)
	s.operator, err = operate(server, s.reconciler)
	must(t, err)
	return s
}

func (s *trial) reconciler(c *engine.Controller) reconcile.Reconciler {
	return &reconciler{controller: c, server: s.server, said: &s.said, ordering: newOrdering()}
}

func (s *trial) end() {
	must(s.t, s.operator.stop())
	must(s.t, s.server.Close())
	s.t.Logf("came to rest %d times, which took %s", s.rests, s.resting.Round(time.Second))
	soak.Report(s.script.Changes, s.missed, s.seed)
}

// stretch is a time of changes: mostly so few of them that none hides what another
// should have done, sometimes many, and sometimes with faults.
func (s *trial) stretch() {
	switch at := s.script.Rand.IntN(100); {
	case at < 90:
		s.change(1 + s.script.Rand.IntN(500))
	case at < 97:
		s.change(20_000)
	default:
		s.suffer(1 + s.script.Rand.IntN(2000))
	}
}

// goesOn says that there is time left, and no reason to end before.
func (s *trial) goesOn() bool { return s.missed == 0 && time.Now().Before(s.until) }

func (s *trial) change(times int) {
	for i := 0; i < times && s.goesOn(); i++ {
		s.script.Change()
	}
	if s.script.Rand.IntN(2) == 0 {
		s.script.Touch()
	}
}

// suffer has a fault every now and then.
func (s *trial) suffer(times int) {
	for i := 0; i < times && s.goesOn(); i++ {
		s.script.Change()
		switch at := s.script.Rand.IntN(400); {
		case at < 4:
			s.faults.one()
			s.operator.look()
		case at == 4:
			s.restart()
		case at == 5:
			s.restartController()
		}
	}
}

// restart replaces the operator by one that knows nothing.
func (s *trial) restart() {
	must(s.t, s.operator.stop())
	var err error
	s.operator, err = operate(s.server, s.reconciler)
	must(s.t, err)
}

func (s *trial) restartController() {
	kind := soak.Pick(s.script, soak.XRKinds)
	s.operator.engine.Stop(kind)
	must(s.t, s.operator.start(kind))
}

// rest waits until each XR says what the model says, and counts those that don't.
func (s *trial) rest() {
	s.t.Helper()
	s.faults.calm()
	s.operator.look()
	s.rests++
	began := time.Now()
	defer func() { s.resting += time.Since(began) }()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(s.patience)
	for {
		wrong := s.wrong()
		if len(wrong) == 0 {
			// Whom the checker wakes is late, but not wrong any more.
			s.missed = foundByChecker(s.t) - s.foundBefore
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			s.missed += len(wrong)
			return
		}
	}
}

// wrong compares every XR, and what it composes, with the model.
func (s *trial) wrong() []string {
	model := soak.Model{Objects: map[schema.GroupVersionKind][]*unstructured.Unstructured{}, Unreadable: s.faults.unreadable}
	for _, kind := range soak.AllKinds() {
		model.Objects[soak.GVK(kind)] = s.server.Objects(soak.GVK(kind))
	}
	var out []string
	for _, kind := range soak.XRKinds {
		for _, xr := range model.Objects[soak.GVK(kind)] {
			if said, want := s.saidBy(xr), model.Expected(xr, composedOf(xr, soak.PlanOf(xr))); said != want {
				out = append(out, fmt.Sprintf("%s %s/%s says %q, want %q; its plan is %+v",
					kind, xr.GetNamespace(), xr.GetName(), said, want, soak.PlanOf(xr)))
			}
		}
	}
	return out
}

// saidBy returns what an XR says.
func (s *trial) saidBy(xr *unstructured.Unstructured) string {
	if xr.GetKind() != soak.SilentKind {
		return soak.SawOf(xr)
	}
	said, _ := s.said.Load(xr.GetUID())
	text, _ := said.(string)
	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
