// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
)

const runbookURL = "https://github.com/crosswatch-io/crosswatch/blob/main/docs/runbook.md"

// targetLabels are those that Prometheus itself gives a series, of which rules and
// dashboard use these.
var targetLabels = map[string]bool{"instance": true, "pod": true, "job": true, "le": true}

// query is an expression, and where it is.
type query struct {
	where, expr string
}

func TestQueriesUseDocumentedMetrics(t *testing.T) {
	metrics := documentedMetrics(t)
	for _, q := range slices.Concat(ruleQueries(t), dashboardQueries(t)) {
		expr, err := promQL.ParseExpr(q.expr)
		if err != nil {
			t.Errorf("%s: %v", q.where, err)
			continue
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok {
				checkSelector(t, metrics, q, selector)
			}
			return nil
		})
	}
}

func checkSelector(t *testing.T, metrics map[string]metric, q query, selector *parser.VectorSelector) {
	t.Helper()
	name := base(metrics, selector.Name)
	documented, ok := metrics[name]
	if !ok {
		t.Errorf("%s: metric %q is not in %s", q.where, name, metricsFile)
		return
	}
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name != "__name__" && !documented.labels[matcher.Name] && !targetLabels[matcher.Name] {
			t.Errorf("%s: metric %q has no label %q in %s", q.where, name, matcher.Name, metricsFile)
		}
	}
}

// TestRunbookNamesDocumentedMetrics finds what is misspelt there.
func TestRunbookNamesDocumentedMetrics(t *testing.T) {
	metrics := documentedMetrics(t)
	named := regexp.MustCompile(`\bcrosswatch_[a-z_]+`).FindAllString(string(read(t, runbookFile)), -1)
	if len(named) == 0 {
		t.Fatalf("%s names no metric", runbookFile)
	}
	for _, name := range named {
		if _, ok := metrics[base(metrics, name)]; !ok {
			t.Errorf("%s: metric %q is not in %s", runbookFile, name, metricsFile)
		}
	}
}

// TestRunbookExplainsEachAlert holds the runbook to a section for each alert, in
// the order of the rules, and none for others.
func TestRunbookExplainsEachAlert(t *testing.T) {
	var alerts []string
	for _, rule := range alertRules(t) {
		alerts = append(alerts, rule.Alert)
	}
	var sections []string
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(read(t, runbookFile)), -1) {
		sections = append(sections, heading[1])
	}
	if diff := cmp.Diff(alerts, sections); diff != "" {
		t.Errorf("alerts (-) and sections of %s (+):\n%s", runbookFile, diff)
	}
}

func TestAlertsSayWhatTheyMean(t *testing.T) {
	for _, rule := range alertRules(t) {
		t.Run(rule.Alert, func(t *testing.T) {
			// GitHub's anchors are headings in lower case.
			if got, want := rule.Annotations["runbook_url"], runbookURL+"#"+strings.ToLower(rule.Alert); got != want {
				t.Errorf("runbook_url: got %q, want %q", got, want)
			}
			for _, annotation := range []string{"summary", "description"} {
				if text := rule.Annotations[annotation]; !strings.HasSuffix(text, ".") {
					t.Errorf("%s: got %q, want sentences", annotation, text)
				}
			}
			// All that concern one XRD, function or state would be one alert otherwise.
			if strings.Contains(rule.Annotations["summary"], "{{") {
				t.Error("the summary differs from alert to alert: put what differs into the description")
			}
			if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
				t.Errorf("severity: got %q, want critical or warning", severity)
			}
			if rule.For == 0 {
				t.Error("it fires for what lasts a moment")
			}
		})
	}
}

// TestDashboardPanels finds what Grafana would show wrongly without a word.
func TestDashboardPanels(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" {
		t.Errorf("uid %q and title %q: want both", d.UID, d.Title)
	}
	seen := map[int]string{}
	for i, p := range d.Panels {
		if other, ok := seen[p.ID]; ok {
			t.Errorf("panels %q and %q have the same id %d", other, p.Title, p.ID)
		}
		seen[p.ID] = p.Title
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q ends at column %d of 24", p.Title, p.GridPos.X+p.GridPos.W)
		}
		for _, other := range d.Panels[:i] {
			if overlap(p.GridPos, other.GridPos) {
				t.Errorf("panels %q and %q overlap", other.Title, p.Title)
			}
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("panel %q has %d queries and description %q: want some of both", p.Title, len(p.Targets), p.Description)
		}
	}
}

func overlap(a, b position) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func ruleQueries(t *testing.T) []query {
	t.Helper()
	var queries []query
	for _, rule := range alertRules(t) {
		queries = append(queries, query{where: "alert " + rule.Alert, expr: rule.Expr})
	}
	return queries
}

// dashboardQueries are those that Grafana sends once it has put values in place of
// its variables.
func dashboardQueries(t *testing.T) []query {
	t.Helper()
	variables := strings.NewReplacer("$__rate_interval", "5m", "$controller", ".*")
	var queries []query
	for _, p := range readDashboard(t).Panels {
		for i, target := range p.Targets {
			where := fmt.Sprintf("dashboard panel %q, query %d", p.Title, i)
			queries = append(queries, query{where: where, expr: variables.Replace(target.Expr)})
		}
	}
	return queries
}
