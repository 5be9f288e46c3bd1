// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile     = "../../config/prometheus/rules.yaml"
	dashboardFile = "../../config/prometheus/dashboard.json"
	metricsFile   = "../../docs/metrics.md"
	runbookFile   = "../../docs/runbook.md"
)

// promQL has no feature that isn't on by default.
var promQL = parser.NewParser(parser.Options{})

// alertRules are the rules as Prometheus reads them: it refuses expressions and
// templates that don't parse, and fields that it doesn't know.
func alertRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	var manifest monitoringv1.PrometheusRule
	if err := yaml.UnmarshalStrict(read(t, rulesFile), &manifest); err != nil {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	content, err := yaml.Marshal(manifest.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("%s: %v", rulesFile, err)
	}
	if len(groups.Groups) != 1 {
		t.Fatalf("%s: %d groups, want one", rulesFile, len(groups.Groups))
	}
	return groups.Groups[0].Rules
}

// dashboard has of Grafana's model what is tested.
type dashboard struct {
	UID    string  `json:"uid"`
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	GridPos     position     `json:"gridPos"`
	Targets     []panelQuery `json:"targets"`
}

type position struct {
	X, Y, W, H int
}

type panelQuery struct {
	Expr string `json:"expr"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, dashboardFile), &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	return d
}

// metric is a row of docs/metrics.md.
type metric struct {
	kind   string
	labels map[string]bool
}

var (
	metricRow   = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([^|]*)\\|")
	quotedLabel = regexp.MustCompile("`([a-z]+)`")
)

// documentedMetrics are the rows of docs/metrics.md by the metric's name.
func documentedMetrics(t *testing.T) map[string]metric {
	t.Helper()
	metrics := map[string]metric{}
	for _, row := range metricRow.FindAllStringSubmatch(string(read(t, metricsFile)), -1) {
		m := metric{kind: row[2], labels: map[string]bool{}}
		for _, label := range quotedLabel.FindAllStringSubmatch(row[3], -1) {
			m.labels[label[1]] = true
		}
		metrics[row[1]] = m
	}
	if len(metrics) == 0 {
		t.Fatalf("%s has no table of metrics", metricsFile)
	}
	return metrics
}

// base is the metric that a series belongs to, of which a histogram has three
// kinds.
func base(metrics map[string]metric, series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, suffix); ok && metrics[name].kind == "histogram" {
			return name
		}
	}
	return series
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
