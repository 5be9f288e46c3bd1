// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// otherEngineLease is the lease of the other engine that reconciles this API group.
const otherEngineLease = "crossplane-leader-election-core"

// A field selector by name is authorised like a request for that name, so that no other lease can be listed.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=crossplane-leader-election-core,verbs=list

// refuseBesideOther fails while another engine works on the same XRs: both would undo what the other does.
func refuseBesideOther(ctx context.Context, reader client.Reader, now time.Time) error {
	leases := &coordinationv1.LeaseList{}
	if err := reader.List(ctx, leases, client.MatchingFields{"metadata.name": otherEngineLease}); err != nil {
		return fmt.Errorf("cannot look for the lease %q of another composition engine: %w", otherEngineLease, err)
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if isLive(lease, now) {
			return fmt.Errorf("another composition engine reconciles API group %q: it holds lease %q in namespace %q; "+
				"stop it, for example by scaling its Deployment to 0, and wait until the lease has expired",
				v1.GroupVersion.Group, lease.Name, lease.Namespace)
		}
	}
	return nil
}

func isLive(lease *coordinationv1.Lease, now time.Time) bool {
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil {
		return false
	}
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return lease.Spec.RenewTime.Add(duration).After(now)
}
