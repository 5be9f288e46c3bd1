// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
)

// statusOf is the DependencyWatchStatus of an XR kind that define made.
func statusOf(kind schema.GroupVersionKind) *watchv1alpha1.DependencyWatchStatus {
	dws := &watchv1alpha1.DependencyWatchStatus{}
	dws.Name = strings.ToLower(kind.Kind) + "s." + group
	return dws
}

// shows is a condition for eventually: a status has these numbers, in the order
// composites tracked, references total, composed, required, by name, by labels,
// watches active.
func (w *world) shows(dws *watchv1alpha1.DependencyWatchStatus, want ...int64) func() (bool, string) {
	return func() (bool, string) {
		if err := w.admin.Get(w.t.Context(), key(dws), dws); err != nil {
			return false, err.Error()
		}
		s := dws.Status
		got := []int64{
			s.Composites.Tracked, s.References.Total, s.References.Composed, s.References.Required,
			s.References.ByName, s.References.ByLabels, s.Watches.Active,
		}
		return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprint(got)
	}
}

func TestDependencyWatchStatusShowsTheTruthAndFollows(t *testing.T) {
	w := newWorld(t)
	w.operate()
	w.function("reader", reader)
	w.function("relay", relay)
	kind := w.define("Counted")
	dws := statusOf(kind)
	w.eventually("a status without XRs", w.shows(dws, 0, 0, 0, 0, 0, 0, 0))

	w.compose(kind, step("reader", nil), step("relay", nil))
	one := w.xr(kind, "one", map[string]any{"settings": "settings"})
	w.ready(one)
	w.eventually("one XR's references: two gadgets and a ConfigMap by name", w.shows(dws, 1, 3, 2, 1, 3, 0, 2))

	two := w.xr(kind, "two", map[string]any{"settings": "settings", "color": w.namespace})
	w.ready(two)
	w.eventually("two XRs' references, one of them by labels", w.shows(dws, 2, 7, 4, 3, 6, 1, 2))
	w.eventually("Converged", func() (bool, string) {
		c := w.conditionOf(dws, "Converged")
		return c["status"] == "True", fmt.Sprint(c)
	})
	w.expectKind(dws, "ConfigMap", 3, 2)
	w.expectKind(dws, "Gadget", 4, 2)

	out, err := cluster.Plane.Kubectl(t.Context(), "get", "dependencywatchstatus", dws.Name)
	w.must(err)
	header := strings.Fields(strings.SplitN(out, "\n", 2)[0])
	if got, want := strings.Join(header, " "), "NAME COMPOSITES REFERENCES WATCHES CONVERGED PUBLISHED"; got != want {
		t.Errorf("kubectl's columns are %q, want %q", got, want)
	}
	if row := strings.Fields(strings.SplitN(out, "\n", 3)[1]); strings.Join(row[1:5], " ") != "2 7 2 True" {
		t.Errorf("kubectl shows %v", row)
	}

	w.remove(two)
	w.eventually("one XR's references again", w.shows(dws, 1, 3, 2, 1, 3, 0, 2))
	w.remove(one)
	w.eventually("nothing at all", w.shows(dws, 0, 0, 0, 0, 0, 0, 0))
}

func (w *world) expectKind(dws *watchv1alpha1.DependencyWatchStatus, kind string, references, dependants int64) {
	w.t.Helper()
	for _, k := range dws.Status.Kinds {
		if k.Kind != kind {
			continue
		}
		if k.References != references || k.Dependants != dependants || k.Watch != watchv1alpha1.WatchActive {
			w.t.Errorf("the row of %s says %d references, %d dependants, %s; want %d, %d and Active",
				kind, k.References, k.Dependants, k.Watch, references, dependants)
		}
		return
	}
	w.t.Errorf("there is no row of %s in %v", kind, dws.Status.Kinds)
}

func TestWatchesEndWhenNothingNeedsThem(t *testing.T) {
	w, kind, _ := composing(t, "relay", relay, sweepOften)
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)

	total := &watchv1alpha1.DependencyWatchStatus{}
	total.Name = watchv1alpha1.NameCluster
	watched := func(want bool) func() (bool, string) {
		return func() (bool, string) {
			w.must(w.admin.Get(t.Context(), key(total), total))
			found := false
			for _, k := range total.Status.Kinds {
				found = found || k.Kind == gadgets.Kind
			}
			return found == want, fmt.Sprint(total.Status.Kinds)
		}
	}
	w.eventually("the watch to show", watched(true))
	w.remove(xr)
	w.eventually("the watch to go", watched(false))
}

// Case A1: the first XR of a kind is reconciled at once, however many sweeps
// passed without one.
func TestA1TheFirstXROfAKindReconcilesAfterSweeps(t *testing.T) {
	w := newWorld(t)
	w.operate(sweepOften)
	w.function("reader", reader)
	kind := w.define("Awaited")
	w.compose(kind, step("reader", nil))
	w.create(w.configMap("settings", nil, map[string]string{"value": "one"}))

	// Sweeps leave a trace: the watch of a kind that an XR of another kind
	// needed for a while goes.
	other := w.shared(bystander)
	w.compose(other, step("reader", nil))
	for range 3 {
		xr := w.xr(other, "passing", map[string]any{"settings": "settings"})
		w.ready(xr)
		w.remove(xr)
		w.eventually("a sweep", w.shows(statusOf(other), 0, 0, 0, 0, 0, 0, 0))
	}

	xr := w.object(kind, "first")
	xr.Object["spec"] = map[string]any{"settings": "settings"}
	w.promptly("the first XR's reconcile", func() { w.create(xr) }, w.has(xr, "one", "status", "value"))
}

func TestARestartIsToldFromConvergedAndLosesNoChange(t *testing.T) {
	w := newWorld(t)
	first := w.operate()
	w.function("reader", reader)
	kind := w.define("Restarted")
	w.compose(kind, step("reader", nil))
	cm := w.configMap("settings", nil, map[string]string{"value": "one"})
	w.create(cm)
	xrs := w.crowd(kind, "xr", 20, func(int) map[string]any { return map[string]any{"settings": "settings"} })
	xrs.ready()
	dws := statusOf(kind)
	converged := func(want string) func() (bool, string) {
		return func() (bool, string) {
			c := w.conditionOf(dws, "Converged")
			return c["status"] == want, fmt.Sprint(c)
		}
	}
	w.eventually("Converged", converged("True"))
	first.stop()

	// Changed while nobody looks, and again right after the start.
	update(w, cm, func(c *configMap) { c.Data["value"] = "two" })
	hold := newGate()
	w.operate(hold.reconciles)
	w.eventually("not Converged", converged("False"))
	update(w, cm, func(c *configMap) { c.Data["value"] = "three" })
	hold.open()
	xrs.shows("three")
	w.eventually("Converged again", converged("True"))
}
