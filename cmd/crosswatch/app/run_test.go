// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crosswatch-io/crosswatch/test/controlplane"
)

const eventually = 30 * time.Second

// operatorTest runs operators on a control plane that has what config/demo installs.
type operatorTest struct {
	plane  *controlplane.ControlPlane
	config *rest.Config
}

func newOperatorTest(t *testing.T) *operatorTest {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Config{ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := plane.ApplyKustomize(t.Context(), "../../../config/demo"); err != nil {
		t.Fatal(err)
	}
	config, err := plane.ServiceAccountConfig(t.Context(), "crosswatch-system", "crosswatch")
	if err != nil {
		t.Fatal(err)
	}
	return &operatorTest{plane: plane, config: config}
}

func (o *operatorTest) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := o.plane.Kubectl(context.Background(), args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// expect waits until kubectl prints what is wanted.
func (o *operatorTest) expect(t *testing.T, want string, args ...string) {
	t.Helper()
	var got string
	var err error
	printed := func(ctx context.Context) (bool, error) {
		got, err = o.plane.Kubectl(ctx, args...)
		return err == nil && strings.TrimSpace(got) == want, nil
	}
	if wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, eventually, true, printed) != nil {
		t.Errorf("kubectl %s: want %q, got %q, error %v", strings.Join(args, " "), want, got, err)
	}
}

// run runs an operator until the test calls stop, which waits for it.
func (o *operatorTest) run(t *testing.T, options Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o.config, options) }()
	return func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(eventually):
			t.Fatal("Run did not return")
		}
	}
}

// statusOf is the kubectl output that has a condition's status or, for another field, that.
func statusOf(condition string) string { return fieldOf(condition, "status") }

func fieldOf(condition, field string) string {
	return "jsonpath={.status.conditions[?(@.type=='" + condition + "')]." + field + "}"
}

func TestRun(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	o := newOperatorTest(t)
	options := NewOptions()
	options.HealthProbeBindAddress = "0"
	options.LeaderElect = true
	options.StatusInterval = 200 * time.Millisecond
	options.LogLevel = LogLevelError
	rounds := filepath.Join(t.TempDir(), "rounds.jsonl")
	options.Inspect = "file:" + rounds

	leaks := []goleak.Option{
		goleak.IgnoreCurrent(),
		// The watch of a metadata informer that stops with an event on its way waits for ever: a fault of the client library.
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
	}
	// The second has to make do with what the first left, in the process and in the cluster.
	for _, operator := range []string{"First", "Second"} {
		t.Run(operator, func(t *testing.T) {
			stop := o.run(t, options)
			func() {
				defer stop()
				o.leads(t)
				o.lifecycle(t)
				o.mend(t)
			}()
			o.expect(t, "", holder...) // whoever stands by need not wait for the lease to expire
		})
	}
	goleak.VerifyNone(t, leaks...)
	if _, err := os.Stat(rounds); err != nil {
		t.Errorf("the operators inspect nothing: %v", err)
	}
}

var holder = []string{"get", "lease", "-n", "crosswatch-system", leaseName, "-o", "jsonpath={.spec.holderIdentity}"}

// leads waits until the operator holds the lease, and says so under the same name.
func (o *operatorTest) leads(t *testing.T) {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var identity string
	held := func(ctx context.Context) (bool, error) {
		identity, err = o.plane.Kubectl(ctx, holder...)
		return err == nil && strings.HasPrefix(identity, host+"_"), nil
	}
	if wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, eventually, true, held) != nil {
		t.Fatalf("nobody of host %q holds the lease, but %q, error %v", host, identity, err)
	}
	o.expect(t, Version()+" "+identity, "get", "dws", "cluster", "-o", "jsonpath={.status.operator.version} {.status.operator.leader}")
}

// lifecycle defines an XR kind, uses it, and deletes it.
func (o *operatorTest) lifecycle(t *testing.T) {
	t.Helper()
	const xrd = "greetings.samples.crosswatch.io"
	known := []string{"get", "dws", "cluster", "-o", "jsonpath={.status.composites.known}"}
	o.kubectl(t, "apply", "-f", samples+"access.yaml",
		"-f", samples+"apiextensions_v2_compositeresourcedefinition.yaml", "-f", samples+"apiextensions_v1_composition.yaml")
	o.expect(t, "True", "get", "xrd", xrd, "-o", statusOf("Established"))
	o.expect(t, "True", "get", "comprev", "-l", "crossplane.io/composition-name=greetings", "-o",
		"jsonpath={.items[*].status.conditions[?(@.type=='ValidPipeline')].status}")

	o.kubectl(t, "apply", "-f", samples+"greeting.yaml")
	o.expect(t, "1", known...)
	o.expect(t, "ReconcileError", "get", "greetings", "world", "-o", fieldOf("Synced", "reason")) // the function is missing
	o.expect(t, xrd, "get", "dws", xrd, "-o", "jsonpath={.metadata.ownerReferences[0].name}")

	o.kubectl(t, "delete", "xrd", xrd, "--timeout=30s")
	o.expect(t, "", "get", "crd,dws", xrd, "--ignore-not-found")
	o.expect(t, "0", known...)
	o.kubectl(t, "delete", "composition", "greetings")
}

// mend defines an XR kind by a schema that the API server refuses, then by one that it takes.
func (o *operatorTest) mend(t *testing.T) {
	t.Helper()
	const xrd = "broken.samples.crosswatch.io"
	file := filepath.Join(t.TempDir(), "xrd.yaml")
	apply := func(fieldType string) {
		if err := os.WriteFile(file, fmt.Appendf(nil, brokenXRD, fieldType), 0o600); err != nil {
			t.Fatal(err)
		}
		o.kubectl(t, "apply", "-f", file)
	}
	apply("text")
	o.expect(t, "InvalidDefinition", "get", "xrd", xrd, "-o", fieldOf("Established", "reason"))
	apply("string")
	o.expect(t, "True", "get", "xrd", xrd, "-o", statusOf("Established"))
	o.kubectl(t, "delete", "xrd", xrd, "--timeout=30s")
}

const (
	samples = "../../../config/samples/"

	brokenXRD = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: broken.samples.crosswatch.io
spec:
  group: samples.crosswatch.io
  names: {kind: Broken, plural: broken}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              field: {type: %s}
`
)
