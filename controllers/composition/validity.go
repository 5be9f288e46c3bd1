// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// validator sets the condition ValidPipeline of CompositionRevisions.
type validator struct {
	client client.Client
}

// Reconcile sets the condition of one CompositionRevision, if it is not so yet.
func (v *validator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	revision := &v1.CompositionRevision{}
	err := v.client.Get(ctx, req.NamespacedName, revision)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot get CompositionRevision %q: %w", req.Name, err)
	case revision.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	}
	functions := &pkgv1.FunctionRevisionList{}
	if err := v.client.List(ctx, functions); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list FunctionRevisions: %w", err)
	}

	before := revision.DeepCopy()
	condition := validPipeline(revision.Spec.Pipeline, functions.Items)
	revision.Status.SetConditions(condition.WithObservedGeneration(revision.Generation))
	if equality.Semantic.DeepEqual(before.Status, revision.Status) {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := v.client.Status().Patch(ctx, revision, patch); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("cannot write the status of CompositionRevision %q: %w", req.Name, err)
	}
	return reconcile.Result{}, nil
}

// validPipeline says whether the functions in force can be steps of a pipeline. One that is missing, or that does not list what
// it can do, may well turn out to: the run tells.
func validPipeline(pipeline []v1.PipelineStep, functions []pkgv1.FunctionRevision) commonv1.Condition {
	incapable := map[string]bool{}
	for i := range functions {
		f := &functions[i]
		capabilities := f.Status.Capabilities
		if f.Spec.DesiredState == pkgv1.RevisionActive && len(capabilities) > 0 && !slices.Contains(capabilities, pkgv1.CapabilityComposition) {
			incapable[f.Labels[pkgv1.LabelParentPackage]] = true
		}
	}
	var faults []string
	for _, step := range pipeline {
		if incapable[step.FunctionRef.Name] {
			faults = append(faults, fmt.Sprintf("step %q: function %q lacks the capability %q",
				step.Step, step.FunctionRef.Name, pkgv1.CapabilityComposition))
		}
	}
	if len(faults) > 0 {
		return commonv1.False(commonv1.TypeValidPipeline, commonv1.ReasonMissingCapabilities, strings.Join(faults, "; "))
	}
	return commonv1.True(commonv1.TypeValidPipeline, commonv1.ReasonValidPipeline)
}
