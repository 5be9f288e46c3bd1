// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
)

const fieldOwner client.FieldOwner = "crosswatch.io/watchstatus"

// write brings one object to what it should be; present is what it is, or nil. That time has passed is no change.
func (p *Publisher) write(ctx context.Context, w publication, present *v1alpha1.DependencyWatchStatus) error {
	isNew := present == nil
	if isNew {
		present = &v1alpha1.DependencyWatchStatus{}
	}
	if isNew || !equality.Semantic.DeepEqual(present.OwnerReferences, w.owners) {
		object := objectOf(w.name)
		object.SetOwnerReferences(w.owners)
		if err := p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("cannot apply DependencyWatchStatus %q: %w", w.name, err)
		}
	}

	w.status.Conditions = slices.Clone(present.Status.Conditions)
	w.status.SetConditions(convergedOf(w.facts))
	w.status.LastPublishedTime = present.Status.LastPublishedTime
	if w.status.LastPublishedTime != nil && equality.Semantic.DeepEqual(present.Status, w.status) {
		return nil
	}
	now := metav1.NewTime(p.clock.Now())
	w.status.LastPublishedTime = &now
	return p.applyStatus(ctx, w)
}

func (p *Publisher) applyStatus(ctx context.Context, w publication) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&w.status)
	if err != nil {
		return fmt.Errorf("cannot write DependencyWatchStatus %q: %w", w.name, err)
	}
	object := objectOf(w.name)
	object.Object["status"] = status
	err = p.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("cannot apply the status of DependencyWatchStatus %q: %w", w.name, err)
	}
	return nil
}

func objectOf(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindDependencyWatchStatus))
	object.SetName(name)
	return object
}
