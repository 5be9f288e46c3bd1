// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// reconciler keeps the revisions of Compositions.
type reconciler struct {
	client client.Client
	live   client.Reader
}

// Reconcile sees to it that the Composition's content has a revision, and that this is the newest.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c := &v1.Composition{}
	err := r.client.Get(ctx, req.NamespacedName, c)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot get Composition %q: %w", req.Name, err)
	case c.DeletionTimestamp != nil:
		return reconcile.Result{}, nil // the revisions go with their owner
	}
	hash, err := Hash(c)
	if err != nil {
		return reconcile.Result{}, err
	}

	// The cache may lack what this controller wrote a moment ago. It is good enough to see that nothing needs to be done, but not
	// to number a revision.
	p, err := planFrom(ctx, r.client, c, hash)
	if err != nil || p.isNothing() {
		return reconcile.Result{}, err
	}
	p, err = planFrom(ctx, r.live, c, hash)
	if err != nil || p.isNothing() {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.carryOut(ctx, c, hash, p)
}

func planFrom(ctx context.Context, reader client.Reader, c *v1.Composition, hash string) (plan, error) {
	revisions := &v1.CompositionRevisionList{}
	if err := reader.List(ctx, revisions, client.MatchingLabels{v1.LabelCompositionName: c.Name}); err != nil {
		return plan{}, fmt.Errorf("cannot list the revisions of Composition %q: %w", c.Name, err)
	}
	return planFor(c, hash, revisions.Items), nil
}

func (r *reconciler) carryOut(ctx context.Context, c *v1.Composition, hash string, p plan) error {
	if p.create {
		revision := Snapshot(c, hash, p.number)
		if err := r.client.Create(ctx, revision); err != nil {
			return fmt.Errorf("cannot create revision %q of Composition %q: %w", revision.Name, c.Name, err)
		}
		return nil
	}

	changed := p.update.DeepCopy()
	changed.Spec.Revision = p.number
	if metav1.GetControllerOf(changed) == nil {
		changed.OwnerReferences = append(changed.OwnerReferences, *metav1.NewControllerRef(c, compositionKind))
	}
	patch := client.MergeFromWithOptions(p.update, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("cannot update revision %q of Composition %q: %w", changed.Name, c.Name, err)
	}
	return nil
}
