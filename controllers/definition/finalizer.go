// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

func (r *reconciler) addFinalizer(ctx context.Context, xrd *v1.CompositeResourceDefinition) error {
	return r.patchFinalizers(ctx, xrd, "add", controllerutil.AddFinalizer)
}

func (r *reconciler) removeFinalizer(ctx context.Context, xrd *v1.CompositeResourceDefinition) error {
	return r.patchFinalizers(ctx, xrd, "remove", controllerutil.RemoveFinalizer)
}

// patchFinalizers keeps the status that the reconcile has come to so far: the API server's answer has that which is stored.
func (r *reconciler) patchFinalizers(ctx context.Context, xrd *v1.CompositeResourceDefinition, verb string,
	change func(client.Object, string) bool,
) error {
	patched := xrd.DeepCopy()
	if !change(patched, v1.FinalizerDefinition) {
		return nil
	}
	patch := client.MergeFromWithOptions(xrd.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, patched, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot %s the finalizer of XRD %q: %w", verb, xrd.Name, err)
	}
	patched.Status = xrd.Status
	*xrd = *patched
	return nil
}
