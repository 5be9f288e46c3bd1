// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// lines are what was logged at the level that the operator logs by default.
type lines struct {
	mu  sync.Mutex
	all []string // guarded by mu
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, args)
	}, funcr.Options{})
}

func (l *lines) with(words string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.all {
		if strings.Contains(line, words) {
			found = append(found, line)
		}
	}
	return found
}

func TestEachTransitionOfAWatchIsLoggedAndCounted(t *testing.T) {
	log := &lines{}
	w := newWorld(t, admin, func(c *engine.Config) { c.Log = log.logger() })
	c := w.start("xrs", leases)
	w.state(leases, engine.Active)
	gvk := kindOf(define("Transient", apiextensionsv1.ClusterScoped), "v1")
	states := []engine.State{engine.Starting, engine.NotFound, engine.Active, engine.Stopping}
	before := transitions(t, states)

	_, _ = c.Require(t.Context(), someXR, requires(named(gvk, "", "a")))
	w.state(gvk, engine.NotFound)
	w.install("Transient", apiextensionsv1.ClusterScoped, "v1")
	w.state(gvk, engine.Active)
	c.Forget(someXR)
	w.engine.Sweep()

	for i, after := range transitions(t, states) {
		if after != before[i]+1 {
			t.Errorf("%s was counted %v times, want once", states[i], after-before[i])
		}
	}
	var got []string
	for _, line := range log.with(`"watch"="` + gvk.String()) {
		_, to, _ := strings.Cut(line, `"to"="`)
		to, _, _ = strings.Cut(to, `"`)
		got = append(got, to)
	}
	if diff := cmp.Diff([]string{"", "NotFound", "Active", "Stopping"}, got); diff != "" {
		t.Errorf("what was logged, by the state that it went to (-want +got):\n%s", diff)
	}
}

func transitions(t *testing.T, to []engine.State) []float64 {
	t.Helper()
	var out []float64
	for _, state := range to {
		out = append(out, seriesOf(t, "state", string(state))["crosswatch_watch_transitions_total"])
	}
	return out
}

// Case A6: a CRD goes, and comes back with another schema and scope.
func TestA6AKindThatComesBackAsAnotherIsWatchedAfresh(t *testing.T) {
	w := newWorld(t, admin, func(c *engine.Config) { c.Log = fromClients.logger() })
	ns := w.namespace()
	c := w.start("xrs", leases)
	crd := w.install("Returning", apiextensionsv1.ClusterScoped, "v1")
	gvk := kindOf(crd, "v1")
	ref := named(gvk, "", "a")
	w.eventually(func() bool {
		_, err := c.Require(t.Context(), someXR, requires(ref))
		return err == nil
	}, func() string { return "the kind is not watched" })
	old, err := c.Require(t.Context(), someXR, requires(ref))
	must(t, err)
	w.createSoon(gvk, "", "a")
	w.expect(someXR)

	logged := len(fromClients.with(""))
	begin := time.Now()
	w.uninstall(crd)
	w.expect(someXR)
	w.state(gvk, engine.NotFound)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the informer ran for another %s", took)
	}
	w.engine.Sweep() // which does not make the XR forget what it waits for
	w.awaitAttempts(gvk, 5)
	if more := fromClients.with("")[logged:]; len(more) > 5 {
		t.Errorf("%d lines were logged:\n%s", len(more), strings.Join(more, "\n"))
	}
	w.ranBefore(c, marker)

	w.install("Returning", apiextensionsv1.NamespaceScoped, "v1")
	w.expect(someXR)
	fresh, err := c.Require(t.Context(), otherXR, requires(named(gvk, ns, "b")))
	must(t, err)
	if fresh == old || !fresh.Kind().Namespaced {
		t.Error("the informer of before is still in use")
	}
	w.client = newClient(t)
	w.createSoon(gvk, ns, "b")
	w.expect(otherXR)

	// Who still reads from the informer of before finds what it last knew, or
	// nothing, and wakes nothing up.
	c.Forget(someXR)
	c.Forget(otherXR)
	w.engine.Sweep()
	old.Get("", "a")
	old.List("", nil)
	if state := w.engine.Watch(gvk).State; state != engine.Starting || len(w.engine.Watches()) != 1 {
		t.Errorf("the watch was revived: it is %s", state)
	}
}

// awaitAttempts waits until the kind was tried that often in vain.
func (w *world) awaitAttempts(gvk schema.GroupVersionKind, n float64) {
	w.t.Helper()
	attempts := func() float64 {
		return seriesOf(w.t, "state", string(engine.NotFound))["crosswatch_watch_failures_total"]
	}
	enough := attempts() + n
	w.eventually(func() bool { return attempts() >= enough }, func() string { return "kind " + gvk.Kind + " is not tried again" })
}

// The watch is cut off while its kind becomes another, so that all it sees is a
// gap.
func TestAKindThatChangesItsScopeBehindTheWatchIsWatchedAfresh(t *testing.T) {
	o := &outage{resource: "crossings", answer: refuse}
	w := newWorld(t, through(func(next http.RoundTripper) http.RoundTripper {
		o.next = next
		return o
	}), func(c *engine.Config) { c.FailureTolerance = time.Hour })
	t.Cleanup(o.begin)
	ns := w.namespace()
	c := w.start("xrs", leases)
	crd := w.install("Crossing", apiextensionsv1.ClusterScoped, "v1")
	gvk := kindOf(crd, "v1")
	_, _ = c.Require(t.Context(), someXR, requires(named(gvk, ns, "a")))
	w.state(gvk, engine.Active)
	old, err := c.Require(t.Context(), someXR, requires(named(gvk, ns, "a")))
	must(t, err)

	o.begin()
	w.uninstall(crd)
	must(t, w.client.Create(t.Context(), define("Crossing", apiextensionsv1.NamespaceScoped, "v1")))
	w.createSoon(gvk, ns, "a")
	o.end()
	w.eventually(func() bool { return old.Get(ns, "a") != nil }, func() string { return "the watch never went on" })
	if same, err := c.Require(t.Context(), someXR, requires(named(gvk, ns, "a"))); err != nil || same != old {
		t.Fatalf("the gap was seen (%v): this test shows nothing", err)
	}

	w.tell(crd)
	w.eventually(func() bool {
		informer, err := c.Require(t.Context(), someXR, requires(named(gvk, ns, "a")))
		return err == nil && informer.Kind().Namespaced && informer.Get(ns, "a") != nil
	}, func() string { return "the kind is still taken for cluster-scoped" })
}

func TestAWatchFollowsItsKindToAnotherStorageVersion(t *testing.T) {
	w := newWorld(t, admin)
	c := w.start("xrs", leases)
	crd := w.install("Moving", apiextensionsv1.ClusterScoped, "v1", "v2")
	gvk := kindOf(crd, "v1")
	_, _ = c.Require(t.Context(), someXR, requires(named(gvk, "", "a")))
	w.state(gvk, engine.Active)
	w.createSoon(gvk, "", "a")
	w.expect(someXR)

	w.change(crd, func() { crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = false, true })
	w.ranBefore(c, marker)
	for _, color := range []string{"blue", "green", "red"} { // by and by the API server ends the watch of before
		u := object(kindOf(crd, "v2"), "", "a")
		w.eventually(func() bool {
			must(t, w.client.Get(t.Context(), types.NamespacedName{Name: "a"}, u))
			u.SetLabels(map[string]string{"color": color})
			return w.client.Update(t.Context(), u) == nil
		}, func() string { return "the object can't be changed" })
		w.expect(someXR)
	}
	w.state(gvk, engine.Active)
}

func TestAVersionThatIsNoLongerServedIsReportedAndFollowedWhenItIsAgain(t *testing.T) {
	w := newWorld(t, admin)
	c := w.start("xrs", leases)
	crd := w.install("Retired", apiextensionsv1.ClusterScoped, "v2", "v1")
	v1, v2 := kindOf(crd, "v1"), kindOf(crd, "v2")
	_, _ = c.Require(t.Context(), someXR, requires(named(v1, "", "a")))
	_, _ = c.Require(t.Context(), otherXR, requires(named(v2, "", "a")))
	w.state(v1, engine.Active)
	w.state(v2, engine.Active)
	w.ranBefore(c, marker)

	w.change(crd, func() { crd.Spec.Versions[1].Served = false })
	w.state(v1, engine.NotFound)
	w.expectOnly(c, someXR, otherXR)

	w.change(crd, func() { crd.Spec.Versions[1].Served = true })
	w.state(v1, engine.Active)
	w.expect(someXR)
	w.createSoon(v2, "", "a")
	w.expect(someXR, otherXR)
}

// requests counts what is asked by path.
type requests struct {
	next http.RoundTripper

	mu     sync.Mutex
	byPath map[string]int // guarded by mu
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	r.next, r.byPath = next, map[string]int{}
	return r
}

func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.byPath[req.URL.Path]++
	r.mu.Unlock()
	return r.next.RoundTrip(req)
}

func (r *requests) of(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byPath[path]
}

func TestACRDIsNoMatterToWatchesOfOtherKinds(t *testing.T) {
	asked := &requests{}
	w := newWorld(t, through(asked.wrap))
	c := w.start("xrs", leases)
	concerned, other := define("Concerned", apiextensionsv1.ClusterScoped), define("Unconcerned", apiextensionsv1.ClusterScoped)
	const path, otherPath, live = "/apis/concerneds.example.org/v1", "/apis/unconcerneds.example.org/v1", "/apis/coordination.k8s.io/v1"
	_, _ = c.Require(t.Context(), someXR, requires(named(kindOf(concerned, "v1"), "", "a")))
	_, _ = c.Require(t.Context(), otherXR, requires(named(kindOf(other, "v1"), "", "a")))
	w.state(leases, engine.Active)
	// By then the next attempt is more than a second away.
	w.eventually(func() bool { return min(asked.of(path), asked.of(otherPath)) >= 5 }, func() string { return "the kinds are not tried again" })

	before, otherBefore, liveBefore := asked.of(path), asked.of(otherPath), asked.of(live)
	w.engine.KindChanged(schema.ParseGroupResource(concerned.Name))
	w.eventually(func() bool { return asked.of(path) >= before+3 }, func() string { return "the kind is not tried at once, and again" })
	if asked.of(otherPath) > otherBefore+1 || asked.of(live) > liveBefore {
		t.Errorf("the API server was asked about other kinds: %d and %d times", asked.of(otherPath)-otherBefore, asked.of(live)-liveBefore)
	}
}
