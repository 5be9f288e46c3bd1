// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// metric is one metric's type and labels, spelled as in docs/metrics.md.
type metric struct{ kind, labels string }

var (
	metricRow    = regexp.MustCompile("(?m)^\\| `(crosswatch_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|")
	metricType   = regexp.MustCompile(`(?m)^# TYPE (crosswatch_[a-z_]+) ([a-z]+)$`)
	metricLabels = regexp.MustCompile(`([a-z_]+)="`)
)

// labelsOf returns the label names that the expression finds, sorted.
func labelsOf(text string, label *regexp.Regexp) string {
	names := sets.New[string]()
	for _, match := range label.FindAllStringSubmatch(text, -1) {
		names.Insert(match[1])
	}
	names.Delete("le") // of each histogram
	return strings.Join(sets.List(names), " ")
}

// documentedMetrics are those of docs/metrics.md.
func documentedMetrics(t *testing.T) map[string]metric {
	t.Helper()
	content, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]metric{}
	for _, row := range metricRow.FindAllStringSubmatch(string(content), -1) {
		documented[row[1]] = metric{kind: row[2], labels: labelsOf(row[3], regexp.MustCompile("`([a-z]+)`"))}
	}
	return documented
}

// servedMetrics are those of the operator's own in what it serves.
func servedMetrics(body string) map[string]metric {
	served := map[string]metric{}
	for _, found := range metricType.FindAllStringSubmatch(body, -1) {
		series := regexp.MustCompile(`(?m)^` + found[1] + `(_bucket)?(\{.*\})? `).FindString(body)
		served[found[1]] = metric{kind: found[2], labels: labelsOf(series, metricLabels)}
	}
	return served
}

// scraper returns the token of somebody who may read metrics.
func (w *world) scraper() string {
	w.t.Helper()
	token := w.token("scraper")
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-scraper"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: "scraper"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "crosswatch-metrics-reader"},
	})
	return token
}

// counted returns the sum of a counter's or gauge's series with these labels, of which those
// with a ! have any value but that.
func (w *world) counted(name string, labels map[string]string) float64 {
	w.t.Helper()
	families, err := metrics.Registry.Gather()
	w.must(err)
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			matches := true
			for _, l := range m.GetLabel() {
				if want, ok := labels[l.GetName()]; ok && l.GetValue() != want {
					matches = false
				}
				if other, ok := labels["!"+l.GetName()]; ok && l.GetValue() == other {
					matches = false
				}
			}
			if matches {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func TestTheMetricsAreThoseThatAreDocumented(t *testing.T) {
	w := newWorld(t)
	address := w.freeAddress()
	w.operate(func(o *app.Options, _ *rest.Config) { o.MetricsBindAddress = address })
	w.function("reader", reader)
	w.function("dreamer", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		respond.Require(rsp, "it", respond.Selector{APIVersion: "dreams.example.org/v1", Kind: "Unicorn"})
		return rsp, nil
	})
	kind, dreams := w.shared(sample), w.shared(bystander)
	w.compose(kind, step("reader", nil))
	w.compose(dreams, step("dreamer", nil))
	w.create(w.configMap("settings", nil, map[string]string{"value": "one"}))
	xr := w.xr(kind, "xr", map[string]any{"settings": "settings"})
	w.ready(xr)
	w.fails(w.xr(dreams, "xr", nil), "Unicorn")

	url, token := "https://"+address+"/metrics", w.scraper()
	var served map[string]metric
	want := documentedMetrics(t)
	w.eventually("all documented metrics", func() (bool, string) {
		served = servedMetrics(w.answers(url, token, http.StatusOK))
		return len(served) >= len(want), fmt.Sprint(served)
	})
	if diff := cmp.Diff(want, served, cmp.AllowUnexported(metric{})); diff != "" {
		t.Errorf("metrics (-documented +served):\n%s", diff)
	}
}
