// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const (
	labelController = "controller"
	labelState      = "state"
	labelResult     = "result"
)

// What the engines of a process count, in controller-runtime's registry. A
// controller's series carry its name, and go with its tracker.
var (
	watchStarts = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "crosswatch_watch_starts_total",
		Help: "Watches of kinds that were put into service.",
	})
	watchStops = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "crosswatch_watch_stops_total",
		Help: "Watches of kinds that were taken out of service because nothing needs them.",
	})
	watchTransitions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crosswatch_watch_transitions_total",
		Help: "Changes of a watch's state, by the state that it changed to.",
	}, []string{labelState})
	watchFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crosswatch_watch_failures_total",
		Help: "Attempts to watch a kind that failed, by the state that the watch was in then.",
	}, []string{labelState})

	eventsReceived = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "crosswatch_events_received_total",
		Help: "Changes of objects that watches told of.",
	})
	eventsMatched = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crosswatch_events_matched_total",
		Help: "Changes of objects that at least one XR of the controller depends on, its own included.",
	}, []string{labelController})
	eventsEnqueued = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crosswatch_events_enqueued_total",
		Help: "XRs that changes of objects asked to be reconciled.",
	}, []string{labelController})
	eventLatency = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "crosswatch_event_to_reconcile_seconds",
		Help:    "Time from the first event that asks for a reconcile to the start of that.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18),
	}, []string{labelController})

	missedChanges = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crosswatch_missed_changes_total",
		Help: "XRs that the checker found not to have been woken for a change; always zero without --verify-interval.",
	}, []string{labelController})

	reconciles = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crosswatch_reconciles_total",
		Help: "Reconciles of XRs, by what they came to.",
	}, []string{labelController, labelResult})

	circuitOpenings = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crosswatch_circuit_openings_total",
		Help: "Times that an XR was found in a loop of writes, and slowed.",
	}, []string{labelController})
	circuitsOpen = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "crosswatch_circuits_open",
		Help: "XRs that are slowed, since they are in a loop of writes.",
	}, []string{labelController})
)

func init() {
	metrics.Registry.MustRegister(watchStarts, watchStops, watchTransitions, watchFailures,
		eventsReceived, eventsMatched, eventsEnqueued, eventLatency, missedChanges, reconciles, circuitOpenings, circuitsOpen)
}

// controllerMetrics are a controller's series, looked up once: an event must not
// pay for that.
type controllerMetrics struct {
	matched, enqueued prometheus.Counter
	missed            prometheus.Counter
	latency           prometheus.Observer
	reconciles        *prometheus.CounterVec // by result
	circuitOpenings   prometheus.Counter
	circuitsOpen      prometheus.Gauge
}

func metricsOf(controller string) controllerMetrics {
	labels := prometheus.Labels{labelController: controller}
	open := circuitsOpen.With(labels)
	open.Set(0) // whatever was open in a controller of that name before
	return controllerMetrics{
		matched:    eventsMatched.With(labels),
		enqueued:   eventsEnqueued.With(labels),
		missed:     missedChanges.With(labels),
		latency:    eventLatency.With(labels),
		reconciles: reconciles.MustCurryWith(labels),

		circuitOpenings: circuitOpenings.With(labels),
		circuitsOpen:    open,
	}
}

func dropMetricsOf(controller string) {
	labels := prometheus.Labels{labelController: controller}
	eventsMatched.DeletePartialMatch(labels)
	eventsEnqueued.DeletePartialMatch(labels)
	eventLatency.DeletePartialMatch(labels)
	missedChanges.DeletePartialMatch(labels)
	reconciles.DeletePartialMatch(labels)
	circuitOpenings.DeletePartialMatch(labels)
	circuitsOpen.DeletePartialMatch(labels)
}

// Reconciled counts a reconcile of an XR by its result, one of few words.
func (c *Controller) Reconciled(result string) {
	c.metrics.reconciles.WithLabelValues(result).Inc()
}
