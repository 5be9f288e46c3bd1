// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/breaker"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// looping is an XR that writes to a Secret whenever that changes.
type looping struct {
	*world

	c      *engine.Controller
	name   types.NamespacedName
	obj    *unstructured.Unstructured // the XR
	fought *unstructured.Unstructured
	times  int
}

// newLoop returns one whose circuit has just opened.
func newLoop(t *testing.T, controller string) *looping {
	t.Helper()
	w := newWorld(t, admin)
	ns := w.namespace()
	l := &looping{world: w, c: w.start(controller, configMaps), name: types.NamespacedName{Namespace: ns, Name: "xr"}}
	l.obj = w.create(configMaps, ns, "xr", nil)
	w.expect(l.name)
	l.c.Begin(l.name)
	_, err := l.c.Require(t.Context(), l.name, requires(named(secrets, ns, "fought")))
	must(t, err)
	l.fought = w.create(secrets, ns, "fought", nil)
	l.run(l.fought)
	for !l.c.Circuit(l.name).Open {
		l.change(l.fought)
		l.run(l.fought)
	}
	return l
}

func (l *looping) change(obj *unstructured.Unstructured) {
	l.t.Helper()
	l.times++
	obj.SetAnnotations(map[string]string{"times": strconv.Itoa(l.times)})
	must(l.t, l.client.Update(l.t.Context(), obj))
}

// run waits until the XR runs, and ends that run having written to the objects.
func (l *looping) run(wrote ...*unstructured.Unstructured) {
	l.t.Helper()
	l.expect(l.name)
	l.begin(wrote...)
}

func (l *looping) begin(wrote ...*unstructured.Unstructured) {
	l.t.Helper()
	l.c.Begin(l.name)
	refs := make([]dependency.Reference, 0, len(wrote))
	for _, obj := range wrote {
		refs = append(refs, named(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName()))
	}
	l.c.Ran(l.name, l.c.Cause(l.name), refs)
}

func TestAnXRInALoopNamesItsObject(t *testing.T) {
	l := newLoop(t, "names")
	want := breaker.Loop{Object: breaker.Object{Kind: secrets, Name: types.NamespacedName{Namespace: l.name.Namespace, Name: "fought"}}, Rewritten: true}
	if diff := cmp.Diff(want, l.c.Circuit(l.name).Loop); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if l.times > 10 {
		t.Errorf("it was found after %d changes", l.times)
	}
	series := seriesOf(t, "controller", "names")
	if open, openings := series["crosswatch_circuits_open"], series["crosswatch_circuit_openings_total"]; open != 1 || openings != 1 {
		t.Errorf("%v open of %v opened, want 1 of 1", open, openings)
	}
}

func TestAnEventOfAnXRInALoopWaitsAndIsNotLost(t *testing.T) {
	l := newLoop(t, "waits")
	wait := l.c.Circuit(l.name).Wait
	start := time.Now()
	l.change(l.fought)
	l.expect(l.name)
	if took := time.Since(start); took < wait-10*time.Millisecond {
		t.Errorf("it ran after %s, want %s", took, wait)
	}
	if cause := l.c.Cause(l.name); cause == nil || cause.Object.Name != "fought" {
		t.Errorf("it ran because of %v, want the change", cause)
	}
}

func TestWhatIsNoneOfALoopDoesNotWaitForIt(t *testing.T) {
	for name, act := range map[string]func(*looping){
		"a new revision": func(l *looping) {
			l.c.Wake(configMaps, types.NamespacedName{Name: "composition"}, l.name)
		},
		"the XR's deletion": func(l *looping) { must(l.t, l.client.Delete(l.t.Context(), l.obj)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, "exempt")
			start := time.Now()
			act(l)
			l.expect(l.name)
			if took := time.Since(start); took > quickBreaker.Refill/2 {
				t.Errorf("it waited for %s", took)
			}
		})
	}
}

func TestALoopThatEndedIsFoundEndedWithoutAnyEvent(t *testing.T) {
	l := newLoop(t, "ends")
	l.expect(l.name)
	l.c.Begin(l.name)
	if cause := l.c.Cause(l.name); cause != nil {
		t.Errorf("it ran because of %v, want no event", cause)
	}
	if l.c.Circuit(l.name).Open {
		t.Error("it ran, and the circuit is open still")
	}
	if open := seriesOf(t, "controller", "ends")["crosswatch_circuits_open"]; open != 0 {
		t.Errorf("%v circuits are open", open)
	}
}

// Case F3: what was held against an XR goes with it.
func TestF3AnXRThatTakesAnothersNameStartsWithAClosedCircuit(t *testing.T) {
	for name, act := range map[string]func(*looping){
		"seen by its own run": func(l *looping) { l.c.Forget(l.name) },
		"another took its name": func(l *looping) {
			must(l.t, l.client.Delete(l.t.Context(), l.obj))
			l.create(configMaps, l.name.Namespace, l.name.Name, nil)
			l.eventually(func() bool {
				obj, _ := l.c.Begin(l.name)
				return obj != nil && obj.GetUID() != l.obj.GetUID()
			}, func() string { return "the informer never saw the other XR" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, "forgets")
			act(l)
			if l.c.Circuit(l.name).Open {
				t.Error("the circuit is open")
			}
			if open := seriesOf(t, "controller", "forgets")["crosswatch_circuits_open"]; open != 0 {
				t.Errorf("%v circuits are open", open)
			}
		})
	}
}

func TestRunsOfNoEventAndRunsThatWriteNothingAreNotCharged(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("free", configMaps)
	obj := w.create(configMaps, ns, "xr", nil)
	l := &looping{world: w, c: c, name: types.NamespacedName{Namespace: ns, Name: "xr"}, obj: obj}
	w.expect(l.name)
	c.Cause(l.name)
	for range 10 {
		c.Enqueue(l.name)
		l.run(obj)
		c.Wake(configMaps, types.NamespacedName{Name: "composition"}, l.name)
		l.run(obj)
		l.change(obj)
		l.run()
	}
	if c.Circuit(l.name).Open {
		t.Error("the circuit opened")
	}
}

// An XR that ran just before lets those go first that did not, and those that are woken
// with a thousand others let those go first that are woken alone.
func TestOfThoseThatAnEventWakesTheOneThatRanLongestAgoGoesFirst(t *testing.T) {
	for _, tc := range []struct {
		rest        time.Duration
		crowd, want int
	}{
		{rest: time.Hour, crowd: 1, want: 0},
		{rest: time.Minute, crowd: 1, want: 0},
		{rest: 59 * time.Second, crowd: 1, want: -1},
		{rest: 20 * time.Second, crowd: 1, want: -2},
		{rest: time.Second, crowd: 1, want: -6},
		{rest: 0, crowd: 1, want: -8},
		{rest: time.Minute, crowd: 2, want: -1},
		{rest: time.Minute, crowd: 1000, want: -4},
		{rest: time.Hour, crowd: 1000, want: 0},
	} {
		if got := engine.PriorityAfter(tc.rest, tc.crowd); got != tc.want {
			t.Errorf("after %s, as one of %d: priority %d, want %d", tc.rest, tc.crowd, got, tc.want)
		}
	}
	order := []int{engine.PriorityAfter(time.Hour, 1), engine.PriorityAfter(0, 1), engine.PriorityResync, engine.PriorityBacklog}
	if !slices.IsSortedFunc(order, func(a, b int) int { return b - a }) {
		t.Errorf("the order of events, resyncs and what is there at the start is %v", order)
	}
}
