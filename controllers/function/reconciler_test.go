// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// forgotten are the functions whose connections were closed.
type forgotten []string

func (f *forgotten) Forget(function string) { *f = append(*f, function) }

func TestRevisionsLeadToTheirFunction(t *testing.T) {
	cases := map[string]struct {
		labels map[string]string
		want   forgotten
	}{
		"Owned":    {labels: map[string]string{pkgv1.LabelParentPackage: "walls"}, want: forgotten{"walls"}},
		"Orphaned": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got forgotten
			r := &reconciler{connections: &got}
			revision := &pkgv1.FunctionRevision{ObjectMeta: metav1.ObjectMeta{Name: "walls-1", Labels: tc.labels}}
			for _, request := range functionOf(context.Background(), revision) {
				if _, err := r.Reconcile(context.Background(), request); err != nil {
					t.Fatalf("Reconcile: %v", err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("forgotten connections (-want +got):\n%s", diff)
			}
		})
	}
}
