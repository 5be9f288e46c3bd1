// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package alerts tests what watches over the operator: the alerts and the
// dashboard in config/prometheus, and docs/metrics.md and docs/runbook.md, which
// explain them. The alerts are evaluated by Prometheus' own rule engine on series
// made up for the purpose.
//
// It is a module of its own, so that the operator's stays free of Prometheus.
package alerts
