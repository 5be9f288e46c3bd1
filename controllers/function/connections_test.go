// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// closed are the functions whose connections were closed, and how.
type closed []string

func (c *closed) Forget(function string) { *c = append(*c, "forget "+function) }
func (c *closed) Remove(function string) { *c = append(*c, "remove "+function) }

func TestConnectionsFollowFunctionsAndTheirRevisions(t *testing.T) {
	cases := map[string]struct {
		labels map[string]string
		want   closed
	}{
		"Installed":   {labels: map[string]string{pkgv1.LabelParentPackage: "walls"}, want: closed{"forget walls"}},
		"Uninstalled": {labels: map[string]string{pkgv1.LabelParentPackage: "roofs"}, want: closed{"remove roofs"}},
		"Orphaned":    {},
	}
	scheme := runtime.NewScheme()
	if err := pkgv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	walls := &pkgv1.Function{ObjectMeta: metav1.ObjectMeta{Name: "walls"}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got closed
			r := &closer{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(walls).Build(), connections: &got}
			revision := &pkgv1.FunctionRevision{ObjectMeta: metav1.ObjectMeta{Name: "a-revision", Labels: tc.labels}}
			for _, request := range labelled(revision, pkgv1.LabelParentPackage) {
				if _, err := r.Reconcile(context.Background(), request); err != nil {
					t.Fatalf("Reconcile: %v", err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("closed connections (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConnectionsAreRenewedOnceAllPodsAreReplaced(t *testing.T) {
	deployment := func(replicas, updated, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available}}
	}
	cases := map[string]struct {
		before, after *appsv1.Deployment
		want          bool
	}{
		"TheLastOldOneGoes":  {before: deployment(2, 1, 2), after: deployment(1, 1, 1), want: true},
		"TheNewOneIsStarted": {before: deployment(1, 0, 1), after: deployment(2, 1, 1)},
		"NothingGoesOn":      {before: deployment(1, 1, 1), after: deployment(1, 1, 1)},
		"TheOnlyOneIsGone":   {before: deployment(1, 1, 1), after: deployment(0, 0, 0)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := replacement.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("connections are closed: %t, want %t", got, tc.want)
			}
		})
	}
}
