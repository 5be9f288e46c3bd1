// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"os"
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

	"github.com/crosswatch-io/crosswatch/internal/dependency"
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

// soak is one run: a script and the operator it tries.
type soak struct {
	t        *testing.T
	seed     uint64
	script   *script
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
	soakEngine(t, seedOf(t), 20*time.Second)
}

func TestSoakTheEngine(t *testing.T) {
	soakEngine(t, seedOf(t), soakTime(t))
}

// seedOf returns SEED, or a new one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text, ok := os.LookupEnv("SEED")
	if !ok {
		return uint64(time.Now().UnixNano())
	}
	var seed uint64
	if _, err := fmt.Sscan(text, &seed); err != nil {
		t.Fatalf("SEED is not a number: %v", err)
	}
	return seed
}

// soakTime returns SOAK; without it the test is skipped.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text, ok := os.LookupEnv("SOAK")
	if !ok {
		t.Skip("set SOAK to how long it should take, or run make test-soak")
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SOAK is not a duration: %v", err)
	}
	return d
}

func soakEngine(t *testing.T, seed uint64, length time.Duration) {
	s := newSoak(t, seed)
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

func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	server, err := watchserver.Start(t.Context())
	must(t, err)
	s := &soak{t: t, seed: seed, server: server, script: newScript(seed, server), patience: patience, foundBefore: foundByChecker(t)}
	s.operator, err = operate(server, &s.said)
	must(t, err)
	return s
}

func (s *soak) end() {
	must(s.t, s.operator.stop())
	must(s.t, s.server.Close())
	s.t.Logf("came to rest %d times, which took %s", s.rests, s.resting.Round(time.Second))
	fmt.Printf("soak changes=%d missed=%d seed=%d\n", s.script.changes, s.missed, s.seed)
}

// stretch is a time of changes: mostly so few of them that none hides what another
// should have done, sometimes many, and sometimes with faults.
func (s *soak) stretch() {
	switch at := s.script.rand.IntN(100); {
	case at < 90:
		s.change(1 + s.script.rand.IntN(500))
	case at < 97:
		s.change(20_000)
	default:
		s.suffer(1 + s.script.rand.IntN(2000))
	}
}

// goesOn says that there is time left, and no reason to end before.
func (s *soak) goesOn() bool { return s.missed == 0 && time.Now().Before(s.until) }

func (s *soak) change(times int) {
	for i := 0; i < times && s.goesOn(); i++ {
		s.script.one(s.script.mix)
	}
	if s.script.rand.IntN(2) == 0 {
		s.script.touch()
	}
}

// suffer has a fault every now and then.
func (s *soak) suffer(times int) {
	for i := 0; i < times && s.goesOn(); i++ {
		s.script.one(s.script.mix)
		switch at := s.script.rand.IntN(400); {
		case at < 4:
			s.script.one(faults)
			s.operator.look()
		case at == 4:
			s.restart()
		case at == 5:
			s.restartController()
		}
	}
}

// restart replaces the operator by one that knows nothing.
func (s *soak) restart() {
	must(s.t, s.operator.stop())
	var err error
	s.operator, err = operate(s.server, &s.said)
	must(s.t, err)
}

func (s *soak) restartController() {
	kind := pick(s.script, xrKinds)
	s.operator.engine.Stop(kind)
	must(s.t, s.operator.start(kind))
}

// rest waits until each XR says what the model says, and counts those that don't.
func (s *soak) rest() {
	s.t.Helper()
	s.script.calm()
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
func (s *soak) wrong() []string {
	objects := map[schema.GroupVersionKind][]*unstructured.Unstructured{}
	for _, kind := range allKinds() {
		objects[gvkOf(kind)] = s.server.Objects(gvkOf(kind))
	}
	var out []string
	for _, kind := range xrKinds {
		for _, xr := range objects[gvkOf(kind)] {
			if said, want := s.saidBy(xr), s.expected(xr, objects); said != want {
				out = append(out, fmt.Sprintf("%s %s/%s says %q, want %q; its plan is %+v",
					kind, xr.GetNamespace(), xr.GetName(), said, want, planOf(xr)))
			}
		}
	}
	return out
}

// saidBy returns what an XR says.
func (s *soak) saidBy(xr *unstructured.Unstructured) string {
	if xr.GetKind() != silentKind {
		return sawOf(xr)
	}
	said, _ := s.said.Load(xr.GetUID())
	text, _ := said.(string)
	return text
}

// expected is what an XR has to say, given the objects that there are.
func (s *soak) expected(xr *unstructured.Unstructured, objects map[schema.GroupVersionKind][]*unstructured.Unstructured) string {
	p := planOf(xr)
	saw, err := evaluate(p, func(ref dependency.Reference) ([]*unstructured.Unstructured, error) {
		if s.script.unreadable(ref.GVK.Kind) {
			return nil, errUnreadable
		}
		return selected(objects[ref.GVK], ref), nil
	})
	if err != nil || p.Composes > 0 && s.script.unreadable(composedKind) {
		return blind
	}
	for _, name := range composedOf(xr, p) {
		ref := dependency.Reference{GVK: gvkOf(composedKind), Namespace: xr.GetNamespace(), Name: name}
		composed := selected(objects[ref.GVK], ref)
		if len(composed) == 0 || valueOf(composed[0]) != saw {
			return "what " + name + " has to say as well: " + saw
		}
	}
	return saw
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
