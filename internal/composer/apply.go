// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apply brings every admitted resource to what is desired. All are attempted, so
// that the cause of a failure is reported whatever follows from it.
func (r *run) apply(ctx context.Context) error {
	for _, one := range r.resources {
		if one.err == nil {
			one.err = r.applyOne(ctx, one)
		}
		r.out.Resources = append(r.out.Resources, ComposedStatus{
			Name: one.name, Ref: one.ref, Ready: one.ready && one.err == nil, Err: one.err,
		})
	}
	return nil
}

func (r *run) applyOne(ctx context.Context, one *resource) error {
	intent := r.intent(one.object, one.objects.Resource())
	intent.Live = one.objects.Get(one.ref.Namespace, one.ref.Name)
	if intent.Live != nil && r.isForeign(intent.Live) {
		controller := metav1.GetControllerOfNoCopy(intent.Live)
		return fmt.Errorf("%s is controlled by %s %q", one.ref, controller.Kind, controller.Name)
	}
	_, sent, err := r.applier.Apply(ctx, intent)
	if sent {
		r.out.Wrote = append(r.out.Wrote, one.ref)
	}
	if apierrors.IsInvalid(err) {
		r.warn(ReasonInvalidResource, "resource %q: cannot apply %s: %s", one.name, one.ref, err)
	}
	if err != nil {
		return fmt.Errorf("cannot apply %s: %w", one.ref, err)
	}
	return nil
}

func (r *run) intent(object *unstructured.Unstructured, resource schema.GroupVersionResource) Intent {
	return Intent{
		XR:         r.in.XR.GetUID(),
		Object:     object,
		Resource:   resource,
		FieldOwner: FieldOwnerOf(r.in.XR.GroupVersionKind().GroupKind(), r.key),
	}
}

// failures joins what went wrong with single resources, sorted by name.
func (r *run) failures() error {
	var errs []error
	for _, one := range r.out.Resources {
		if one.Err != nil {
			errs = append(errs, fmt.Errorf("resource %q: %w", one.Name, one.Err))
		}
	}
	return errors.Join(append(errs, r.undeleted...)...)
}
