// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"context"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// usersOf maps a FunctionRevision to the CompositionRevisions whose pipelines call the function.
func (v *validator) usersOf(ctx context.Context, revision client.Object) []reconcile.Request {
	function := revision.GetLabels()[pkgv1.LabelParentPackage]
	all := &v1.CompositionRevisionList{}
	if err := v.client.List(ctx, all); err != nil {
		// The cache can't be read only when it stops, and the process with it.
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the pipelines that call a function", "function", function)
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if calls(all.Items[i].Spec.Pipeline, function) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

func calls(pipeline []v1.PipelineStep, function string) bool {
	return slices.ContainsFunc(pipeline, func(s v1.PipelineStep) bool { return s.FunctionRef.Name == function })
}
