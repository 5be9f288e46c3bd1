// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// watchStates are those of watches in service: a count of none is told, too.
var watchStates = []engine.State{
	engine.Starting, engine.Active, engine.Forbidden, engine.NotFound, engine.Unwatchable, engine.Failed,
}

var (
	knownDesc = prometheus.NewDesc("crosswatch_composites_known",
		"XRs that there are.", []string{"controller"}, nil)
	trackedDesc = prometheus.NewDesc("crosswatch_composites_tracked",
		"XRs whose dependencies are recorded.", []string{"controller"}, nil)
	settledDesc = prometheus.NewDesc("crosswatch_composites_settled",
		"XRs of which it is known what they depend on, or that there is nothing to know.", []string{"controller"}, nil)
	convergedDesc = prometheus.NewDesc("crosswatch_converged",
		"Whether every known XR has settled since the operator started; 0 also where nobody reconciles the XRs of an XRD.", []string{"controller"}, nil)
	referencesDesc = prometheus.NewDesc("crosswatch_references",
		"References that XRs hold.", []string{"controller", "role"}, nil)
	trackerBytesDesc = prometheus.NewDesc("crosswatch_tracker_bytes",
		"Memory that the references take, estimated.", []string{"controller"}, nil)
	watchesDesc = prometheus.NewDesc("crosswatch_watches",
		"Watches, one a kind, by their state.", []string{"state"}, nil)
	objectsDesc = prometheus.NewDesc("crosswatch_watch_objects",
		"Objects that the informers of all watches hold.", nil, nil)
	successDesc = prometheus.NewDesc("crosswatch_publication_success_timestamp_seconds",
		"When every DependencyWatchStatus was last known to be published without an error, 0 before that.", nil, nil)
	intervalDesc = prometheus.NewDesc("crosswatch_publication_interval_seconds",
		"Least time between two publications of a DependencyWatchStatus.", nil, nil)
)

// collector tells Prometheus, when it asks, what the trackers and the engine count anyway. It is registered while its operator
// leads: a replica that stands by has nothing to tell, and a sum over replicas counts nothing twice.
type collector struct {
	engine   Engine
	interval time.Duration
	// succeeded is when nothing was last known to have failed, in nanoseconds since 1970.
	succeeded atomic.Int64
	// stalled are the XRDs whose XRs nobody reconciles, as of the last look at all of them.
	stalled atomic.Pointer[[]string]
}

// noteStalled picks those whose kind is there, and no XR controller for it: nothing of theirs is known, and nothing converged.
func (c *collector) noteStalled(all []Facts) {
	var stalled []string
	for _, f := range all {
		if f.Down != "" && !f.Vacant {
			stalled = append(stalled, f.XRD)
		}
	}
	c.stalled.Store(&stalled)
}

// Describe implements prometheus.Collector.
func (*collector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		knownDesc, trackedDesc, settledDesc, convergedDesc, referencesDesc, trackerBytesDesc,
		watchesDesc, objectsDesc, successDesc, intervalDesc,
	} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	controllers, watches := c.engine.Controllers(), c.engine.Watches()
	byKind := byKindOf(watches)
	running := make(map[string]bool, len(controllers))
	for _, one := range controllers {
		running[one.Name()] = true
		collectController(gauge, one, byKind.isActive(one.Kind()))
	}
	for _, xrd := range ptr.Deref(c.stalled.Load(), nil) {
		if !running[xrd] {
			gauge(convergedDesc, 0, xrd)
		}
	}

	states, objects := map[engine.State]int{}, 0
	for _, w := range watches {
		states[w.State]++
		objects += w.Objects
	}
	for _, state := range watchStates {
		gauge(watchesDesc, float64(states[state]), string(state))
	}
	gauge(objectsDesc, float64(objects))
	gauge(successDesc, time.Duration(c.succeeded.Load()).Seconds())
	gauge(intervalDesc, c.interval.Seconds())
}

// collectController tells of one controller. That its watch was active is known before its XRs are counted: see look.
func collectController(gauge func(*prometheus.Desc, float64, ...string), c controller, synced bool) {
	f := Facts{Synced: synced, Stats: c.Tracker().Stats()}
	f.Known, f.Settled = c.Known()
	name := c.Name()
	gauge(knownDesc, float64(f.Known), name)
	gauge(trackedDesc, float64(f.Stats.XRs), name)
	gauge(settledDesc, float64(f.Settled), name)
	gauge(convergedDesc, map[bool]float64{true: 1}[f.isConverged()], name)
	gauge(referencesDesc, float64(f.Stats.Composed), name, "composed")
	gauge(referencesDesc, float64(f.Stats.Required), name, "required")
	gauge(trackerBytesDesc, float64(f.Stats.Bytes), name)
}
