// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
