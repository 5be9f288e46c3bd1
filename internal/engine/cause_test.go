// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crosswatch-io/crosswatch/internal/engine"
)

func TestARunIsToldWhichChangeWokeItsXRFirst(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", configMaps)
	name := types.NamespacedName{Namespace: ns, Name: "xr"}
	w.state(configMaps, engine.Active) // what is there before is woken by no event
	w.create(configMaps, ns, "xr", nil)
	w.expect(name)
	if cause := c.Cause(name); cause == nil || cause.String() != "ConfigMap "+ns+"/xr" {
		t.Errorf("a new XR was woken by %v, want itself", cause)
	}
	if cause := c.Cause(name); cause != nil {
		t.Errorf("the cause %v is still there for the next run", cause)
	}

	for _, required := range []string{"first", "second"} {
		_, err := c.Require(t.Context(), someXR, requires(named(secrets, ns, required)))
		must(t, err)
	}
	for _, required := range []string{"first", "second"} {
		w.create(secrets, ns, required, nil)
		w.expect(someXR)
	}
	cause := c.Cause(someXR)
	if cause == nil || cause.String() != "Secret "+ns+"/first" {
		t.Errorf("woken by %v, want the first Secret", cause)
	}
	c.PutBack(someXR, cause)
	if got := c.Cause(someXR); got != cause {
		t.Errorf("the cause of a run that came to nothing is %v for the next, want %v", got, cause)
	}

	c.Enqueue(someXR)
	w.expect(someXR)
	if cause := c.Cause(someXR); cause != nil {
		t.Errorf("woken by %v, want no event", cause)
	}
}

// seriesOf returns the values of all series that carry the label; that of a
// histogram is how much it observed.
func seriesOf(t *testing.T, label, value string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	series := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			isOurs := slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
				return l.GetName() == label && l.GetValue() == value
			})
			if isOurs && strings.HasPrefix(family.GetName(), "crosswatch_") {
				series[family.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return series
}

func TestEventsAreCountedUntilTheirControllerIsRemoved(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	const controller = "counted"
	c := w.start(controller, secrets)
	_, err := c.Require(t.Context(), someXR, requires(named(configMaps, ns, "a")))
	must(t, err)
	w.ranBefore(c, marker)

	w.create(configMaps, ns, "a", nil)
	w.create(configMaps, ns, "b", nil) // nothing refers to it
	w.expect(someXR)
	c.Cause(someXR)
	c.Reconciled("synced")
	want := map[string]float64{
		"crosswatch_events_matched_total":       1,
		"crosswatch_events_enqueued_total":      1,
		"crosswatch_event_to_reconcile_seconds": 1,
		"crosswatch_reconciles_total":           1,
		"crosswatch_circuit_openings_total":     0,
		"crosswatch_circuits_open":              0,
		"crosswatch_missed_changes_total":       0,
	}
	if diff := cmp.Diff(want, seriesOf(t, "controller", controller)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}

	w.engine.Remove(controller)
	if left := seriesOf(t, "controller", controller); len(left) > 0 {
		t.Errorf("left after the controller was removed: %v", slices.Collect(maps.Keys(left)))
	}
}
