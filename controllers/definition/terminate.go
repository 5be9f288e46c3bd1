// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// XRs that go tell the XRD nothing, so that they are counted again: after a millisecond for each, within these times.
const (
	minTerminationRecheck = 200 * time.Millisecond
	maxTerminationRecheck = 5 * time.Second
)

// terminate takes down what establish put up. Each call does what can be done now; the next comes with the CRD's events, or
// after a while where XRs are still there.
func (r *reconciler) terminate(ctx context.Context, xrd *v1.CompositeResourceDefinition, crd *extv1.CustomResourceDefinition) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(xrd, v1.FinalizerDefinition) {
		return reconcile.Result{}, nil
	}
	terminating := commonv1.False(commonv1.TypeEstablished, commonv1.ReasonTerminatingCompositeResource, "")
	result, err := r.takeDown(ctx, xrd, crd)
	if err != nil && !isPassing(err) {
		terminating.Message = err.Error()
	}
	setCondition(xrd, terminating)
	return result, err
}

func (r *reconciler) takeDown(ctx context.Context, xrd *v1.CompositeResourceDefinition, crd *extv1.CustomResourceDefinition) (reconcile.Result, error) {
	if crd == nil || !metav1.IsControlledBy(crd, xrd) {
		r.engine.Remove(xrd.Name)
		return reconcile.Result{}, r.removeFinalizer(ctx, xrd)
	}
	if err := r.permit(ctx, xrd, crd); err != nil {
		return reconcile.Result{}, err
	}
	remaining, err := r.deleteXRs(ctx, xrd)
	if err != nil {
		return reconcile.Result{}, err
	}
	if remaining > 0 {
		return r.awaitXRs(xrd, remaining)
	}

	// XRs that are created from here on are found when the CRD's deletion, which refuses more of them, wakes this XRD.
	r.engine.Remove(xrd.Name)
	if crd.DeletionTimestamp == nil {
		return reconcile.Result{}, r.deleteCRD(ctx, crd)
	}
	return reconcile.Result{RequeueAfter: maxTerminationRecheck}, nil
}

// awaitXRs lets the XR controller work: it, and nobody else, removes the XRs' finalizers. It does not run yet if the operator
// was started after the XRD's deletion.
func (r *reconciler) awaitXRs(xrd *v1.CompositeResourceDefinition, remaining int) (reconcile.Result, error) {
	if _, err := r.engine.Start(xrd.Name, r.controller(xrd)); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot start the XR controller of XRD %q: %w", xrd.Name, err)
	}
	after := time.Duration(remaining) * time.Millisecond
	return reconcile.Result{RequeueAfter: min(max(after, minTerminationRecheck), maxTerminationRecheck)}, nil
}

// deleteXRs deletes all XRs that are not being deleted yet, and returns how many there are still. The XRD must control the CRD: what
// is served without one are somebody else's objects.
func (r *reconciler) deleteXRs(ctx context.Context, xrd *v1.CompositeResourceDefinition) (remaining int, err error) {
	xrs := r.metadata.Resource(resourceOf(xrd))
	page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return xrs.List(ctx, o) }
	err = pager.New(page).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		xr, err := meta.Accessor(item)
		if err != nil {
			return fmt.Errorf("cannot read an XR: %w", err)
		}
		remaining++
		if xr.GetDeletionTimestamp() != nil {
			return nil
		}
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(xr.GetUID())}}
		err = xrs.Namespace(xr.GetNamespace()).Delete(ctx, xr.GetName(), options)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return fmt.Errorf("cannot delete XR %q in namespace %q: %w", xr.GetName(), xr.GetNamespace(), err)
	})
	if apierrors.IsNotFound(err) {
		return 0, nil // the kind is not served, so that it has no XRs
	}
	if err != nil {
		return remaining, fmt.Errorf("cannot delete the XRs of XRD %q: %w", xrd.Name, err)
	}
	return remaining, nil
}

func (r *reconciler) deleteCRD(ctx context.Context, crd *extv1.CustomResourceDefinition) error {
	err := r.client.Delete(ctx, crd, client.Preconditions{UID: ptr.To(crd.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete CRD %q: %w", crd.Name, err)
	}
	return nil
}
