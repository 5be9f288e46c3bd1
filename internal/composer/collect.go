// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/crosswatch-io/crosswatch/internal/apifault"
)

// collect deletes what is observed and no longer desired, if this XR controls
// it. What others own or nobody does is let go of.
func (r *run) collect(ctx context.Context) error {
	desired := map[identity]bool{}
	for _, one := range r.resources {
		desired[identityOf(one.ref)] = true
	}
	for _, o := range r.observed {
		if desired[identityOf(o.ref)] || !r.isOurs(o.object) {
			continue
		}
		r.leftovers = append(r.leftovers, o)
		r.applier.forgetObject(r.intent(o.object, o.resource))
		if err := r.remove(ctx, o); err != nil {
			r.undeleted = append(r.undeleted, fmt.Errorf("resource %q: cannot delete %s, which is no longer desired: %w", o.name, o.ref, err))
		}
	}
	return nil
}

// remove deletes in the foreground, so that what the object owns goes first. The
// UID makes sure that it is the object that was observed.
func (r *run) remove(ctx context.Context, o *observation) error {
	if o.object.GetDeletionTimestamp() != nil {
		return nil
	}
	err := r.clientFor(o).Delete(ctx, o.ref.Name, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationForeground),
		Preconditions:     &metav1.Preconditions{UID: ptr.To(o.object.GetUID())},
	})
	if err == nil {
		r.out.Wrote = append(r.out.Wrote, o.ref)
	}
	// In either case that object is gone, and its event is on its way.
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return apifault.Stable(err)
}

func (r *run) clientFor(o *observation) dynamic.ResourceInterface {
	if o.ref.Namespace != "" {
		return r.client.Resource(o.resource).Namespace(o.ref.Namespace)
	}
	return r.client.Resource(o.resource)
}
