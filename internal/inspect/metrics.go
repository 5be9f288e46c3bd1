// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// droppedTotal is in controller-runtime's registry for as long as the process
// lives.
var droppedTotal = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "crosswatch_inspect_dropped_total",
	Help: "Rounds of functions that could not be shown to whoever inspects them.",
})

func init() {
	metrics.Registry.MustRegister(droppedTotal)
}
