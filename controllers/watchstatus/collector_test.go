// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// collectorFunc collects what the function sends.
type collectorFunc func(chan<- prometheus.Metric)

func (collectorFunc) Describe(chan<- *prometheus.Desc)      {}
func (f collectorFunc) Collect(ch chan<- prometheus.Metric) { f(ch) }

func TestCollectController(t *testing.T) {
	tracker := dependency.NewTracker()
	front := dependency.Reference{GVK: doorKind, Name: "front"}
	lamp := dependency.Requirement{Step: "light", Name: "lamps", Reference: dependency.Reference{GVK: lampKind}}
	tracker.Track(types.NamespacedName{Name: "kitchen"}, []dependency.Reference{front}, []dependency.Requirement{lamp})
	tests := map[string]struct {
		synced    bool
		settled   int
		converged string
	}{
		"Converged": {synced: true, settled: 2, converged: "1"},
		"Behind":    {synced: true, settled: 1, converged: "0"},
		"NotSynced": {settled: 2, converged: "0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := fakeController{name: "rooms", kind: roomKind, tracker: tracker, known: 2, settled: tc.settled}
			got := collectorFunc(func(ch chan<- prometheus.Metric) {
				collectController(func(desc *prometheus.Desc, value float64, labels ...string) {
					ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
				}, c, tc.synced)
			})
			want := `
# HELP crosswatch_composites_known XRs that there are.
# TYPE crosswatch_composites_known gauge
crosswatch_composites_known{controller="rooms"} 2
# HELP crosswatch_composites_tracked XRs whose dependencies are recorded.
# TYPE crosswatch_composites_tracked gauge
crosswatch_composites_tracked{controller="rooms"} 1
# HELP crosswatch_converged Whether every known XR has settled since the operator started; 0 also where nobody reconciles the XRs of an XRD.
# TYPE crosswatch_converged gauge
crosswatch_converged{controller="rooms"} ` + tc.converged + `
# HELP crosswatch_references References that XRs hold.
# TYPE crosswatch_references gauge
crosswatch_references{controller="rooms",role="composed"} 1
crosswatch_references{controller="rooms",role="required"} 1
`
			if err := testutil.CollectAndCompare(got, strings.NewReader(want), "crosswatch_composites_known",
				"crosswatch_composites_tracked", "crosswatch_converged", "crosswatch_references"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCollectWatches(t *testing.T) {
	c := &collector{interval: 30 * time.Second, engine: &idleEngine{watches: []engine.WatchInfo{
		{GVK: doorKind, State: engine.Active, Objects: 2}, {GVK: lampKind, State: engine.Active, Objects: 3}, {GVK: podKind, State: engine.Forbidden},
	}}}
	c.succeeded.Store(time.Unix(1_700_000_000, 0).UnixNano())
	c.noteStalled([]Facts{
		{XRD: "stalled", Down: "not allowed"}, {XRD: "vacant", Down: "not valid", Vacant: true}, {XRD: "starting"},
	})
	want := `
# HELP crosswatch_converged Whether every known XR has settled since the operator started; 0 also where nobody reconciles the XRs of an XRD.
# TYPE crosswatch_converged gauge
crosswatch_converged{controller="stalled"} 0
# HELP crosswatch_publication_interval_seconds Least time between two publications of a DependencyWatchStatus.
# TYPE crosswatch_publication_interval_seconds gauge
crosswatch_publication_interval_seconds 30
# HELP crosswatch_publication_success_timestamp_seconds When every DependencyWatchStatus was last known to be published without an error, 0 before that.
# TYPE crosswatch_publication_success_timestamp_seconds gauge
crosswatch_publication_success_timestamp_seconds 1.7e+09
# HELP crosswatch_watch_objects Objects that the informers of all watches hold.
# TYPE crosswatch_watch_objects gauge
crosswatch_watch_objects 5
# HELP crosswatch_watches Watches, one a kind, by their state.
# TYPE crosswatch_watches gauge
crosswatch_watches{state="Active"} 2
crosswatch_watches{state="Failed"} 0
crosswatch_watches{state="Forbidden"} 1
crosswatch_watches{state="NotFound"} 0
crosswatch_watches{state="Starting"} 0
crosswatch_watches{state="Unwatchable"} 0
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
