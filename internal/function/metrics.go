// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const (
	labelFunction = "function"
	labelCode     = "code"
	labelFrom     = "from"
)

// Where an answer was from.
const (
	cached = "cache"
	called = "call"
)

// What is counted of each function, in controller-runtime's registry, for as
// long as the function is installed.
var (
	calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crosswatch_function_calls_total",
		Help: "Calls of functions, by the gRPC code that they ended with.",
	}, []string{labelFunction, labelCode})
	callSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "crosswatch_function_call_seconds",
		Help:    "Time that calls of functions took, failed ones included.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
	}, []string{labelFunction})
	lookups = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crosswatch_function_cache_lookups_total",
		Help: "Answers that functions might have been spared, by where they were from.",
	}, []string{labelFunction, labelFrom})
	rounds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "crosswatch_function_rounds",
		Help:    "Rounds that a pipeline step took until its function asked for nothing more: calls, and answers that were known.",
		Buckets: prometheus.LinearBuckets(1, 1, MaxCalls),
	}, []string{labelFunction})
)

func init() {
	metrics.Registry.MustRegister(calls, callSeconds, lookups, rounds)
}

func countCall(function string, began time.Time, err error) {
	callSeconds.WithLabelValues(function).Observe(time.Since(began).Seconds())
	calls.WithLabelValues(function, codeOf(err).String()).Inc()
}

func countLookup(function string, wasCalled bool) {
	from := cached
	if wasCalled {
		from = called
	}
	lookups.WithLabelValues(function, from).Inc()
}

func codeOf(err error) codes.Code {
	var failed *CallError
	switch {
	case err == nil:
		return codes.OK
	case errors.As(err, &failed):
		return failed.Code
	default:
		return codes.Canceled // by whoever asked for the call
	}
}

func dropMetricsOf(function string) {
	labels := prometheus.Labels{labelFunction: function}
	calls.DeletePartialMatch(labels)
	callSeconds.DeletePartialMatch(labels)
	lookups.DeletePartialMatch(labels)
	rounds.DeletePartialMatch(labels)
}
