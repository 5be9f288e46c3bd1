// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// classification is how the API server filed a request, by names.
type classification struct {
	FlowSchema, PriorityLevel string
}

// TestLeaseHasPriority sends what the operator's leader election sends, as the
// operator, and something else.
func TestLeaseHasPriority(t *testing.T) {
	operator, filed := operatorClient(t)
	leases := operator.CoordinationV1().Leases(namespace)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "crosswatch-leader-election"}}
	urgent := classification{FlowSchema: "crosswatch-leader-election", PriorityLevel: "leader-election"}
	requests := []struct {
		what string
		send func(context.Context) error
		want classification
	}{
		{"create a lease", func(ctx context.Context) (err error) {
			lease, err = leases.Create(ctx, lease, metav1.CreateOptions{})
			return err
		}, urgent},
		{"get a lease", func(ctx context.Context) error {
			_, err := leases.Get(ctx, lease.Name, metav1.GetOptions{})
			return err
		}, urgent},
		{"update a lease", func(ctx context.Context) (err error) {
			lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
			return err
		}, urgent},
		{"list secrets", func(ctx context.Context) error {
			// Of Secrets it may list one, by its name.
			_, err := operator.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=crossplane-tls-client"})
			return err
		}, classification{FlowSchema: "service-accounts", PriorityLevel: "workload-low"}},
	}

	awaitSchema(t, urgent.FlowSchema)
	for _, request := range requests {
		if err := request.send(t.Context()); err != nil {
			t.Fatalf("%s: %v", request.what, err)
		}
		if diff := cmp.Diff(request.want, filed()); diff != "" {
			t.Errorf("%s: filed as (-want +got):\n%s", request.what, diff)
		}
	}
}

// operatorClient sends as the operator's ServiceAccount. The function that it
// returns tells how the API server filed the last request.
func operatorClient(t *testing.T) (kubernetes.Interface, func() classification) {
	t.Helper()
	cfg, err := plane.ServiceAccountConfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	var last http.Header
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				last = response.Header
			}
			return response, err
		})
	})
	operator, err := kubernetes.NewForConfig(rest.CopyConfig(cfg))
	if err != nil {
		t.Fatal(err)
	}
	schemas, levels := priorityNames(t)
	return operator, func() classification {
		return classification{
			FlowSchema:    schemas[types.UID(last.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID))],
			PriorityLevel: levels[types.UID(last.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID))],
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// priorityNames are the names of flow schemas and of priority levels, by their UIDs.
func priorityNames(t *testing.T) (schemas, levels map[types.UID]string) {
	t.Helper()
	schemas, levels = map[types.UID]string{}, map[types.UID]string{}
	schemaList, err := client.FlowcontrolV1().FlowSchemas().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range schemaList.Items {
		schemas[schemaList.Items[i].UID] = schemaList.Items[i].Name
	}
	levelList, err := client.FlowcontrolV1().PriorityLevelConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range levelList.Items {
		levels[levelList.Items[i].UID] = levelList.Items[i].Name
	}
	return schemas, levels
}

// awaitSchema waits until the API server says that a flow schema refers to a
// priority level, which it does in the step in which it begins to use it.
func awaitSchema(t *testing.T, name string) {
	t.Helper()
	var last []flowcontrolv1.FlowSchemaCondition
	try := func(ctx context.Context) (bool, error) {
		schema, err := client.FlowcontrolV1().FlowSchemas().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = schema.Status.Conditions
		for _, condition := range last {
			if condition.Type == flowcontrolv1.FlowSchemaConditionDangling {
				return condition.Status == flowcontrolv1.ConditionFalse, nil
			}
		}
		return false, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, try); err != nil {
		t.Fatal(fmt.Errorf("flow schema %q is not in use: %w; its conditions: %v", name, err, last))
	}
}
