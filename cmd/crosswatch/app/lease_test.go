// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestRefuseBesideOther(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lease := func(name, holder string, renewed time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       &holder,
				LeaseDurationSeconds: ptr.To[int32](60),
				RenewTime:            ptr.To(metav1.NewMicroTime(now.Add(-renewed))),
			},
		}
	}
	cases := map[string]struct {
		lease   *coordinationv1.Lease
		refused bool
	}{
		"Live":     {lease: lease(otherEngineLease, "pod", 30*time.Second), refused: true},
		"Expired":  {lease: lease(otherEngineLease, "pod", 2*time.Minute)},
		"Released": {lease: lease(otherEngineLease, "", time.Second)},
		"NoTimes":  {lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: otherEngineLease}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme, err := NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.lease).
				WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
				Build()
			err = refuseBesideOther(context.Background(), reader, now)
			if (err != nil) != tc.refused {
				t.Errorf("want refused %t, got error %v", tc.refused, err)
			}
			if tc.refused && !strings.Contains(err.Error(), `in namespace "elsewhere"; stop it`) {
				t.Errorf("want the lease's namespace and advice, got %q", err)
			}
		})
	}
}
