// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// monitoringModule requires the Prometheus operator's types, from which its CRDs are generated.
	monitoringModule = "../alerts"
	monitoringTypes  = "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	toolsModfile     = "../../hack/tools/go.mod"
)

// TestPrometheusIsAccepted installs the kinds of the Prometheus operator, without
// which config/default has been applied.
func TestPrometheusIsAccepted(t *testing.T) {
	crds := filepath.Join(t.TempDir(), "crds")
	generateCRDs(t, crds)
	files := []string{
		"-f", filepath.Join(crds, "monitoring.coreos.com_servicemonitors.yaml"),
		"-f", filepath.Join(crds, "monitoring.coreos.com_prometheusrules.yaml"),
	}
	kubectl(t, append(files, "apply", "--server-side")...)
	kubectl(t, append(files, "wait", "--for=condition=Established", "--timeout=90s")...)

	kubectl(t, append(strict, "apply", "--dry-run=server", "-k", configDir+"/prometheus")...)
}

func TestServiceMonitorFindsTheService(t *testing.T) {
	monitor := *find[unstructured.Unstructured](t, "prometheus", "ServiceMonitor")
	service := find[corev1.Service](t, "default", "Service")
	if monitor.GetNamespace() != service.Namespace {
		t.Errorf("the ServiceMonitor looks in namespace %q, the Service is in %q", monitor.GetNamespace(), service.Namespace)
	}
	matchLabels, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	if err != nil {
		t.Fatal(err)
	}
	if selector := labels.SelectorFromSet(matchLabels); selector.Empty() || !selector.Matches(labels.Set(service.Labels)) {
		t.Errorf("selector %q does not select a Service with labels %v", selector, service.Labels)
	}
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	if err != nil {
		t.Fatal(err)
	}
	if len(endpoints) != 1 || endpoints[0].(map[string]any)["port"] != service.Spec.Ports[0].Name {
		t.Errorf("endpoints %v, want one at port %q", endpoints, service.Spec.Ports[0].Name)
	}
}

// TestDashboardIsInItsConfigMap holds for Grafana's sidecar, which reads whatever
// key ends with .json.
func TestDashboardIsInItsConfigMap(t *testing.T) {
	dashboard := find[corev1.ConfigMap](t, "prometheus", "ConfigMap").Data["crosswatch.json"]
	if !json.Valid([]byte(dashboard)) {
		t.Errorf("crosswatch.json is not JSON: %.200s", dashboard)
	}
}

// generateCRDs makes the CRDs of the Prometheus operator out of its Go types.
func generateCRDs(t *testing.T, dir string) {
	t.Helper()
	generator := strings.TrimSpace(run(t, ".", "go", "tool", "-modfile="+toolsModfile, "-n", "controller-gen"))
	run(t, monitoringModule, generator, "crd", "paths="+monitoringTypes, "output:crd:dir="+dir)
}

func run(t *testing.T, dir, command string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, stderr.Bytes())
	}
	return stdout.String()
}
