// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
)

const fieldOwner client.FieldOwner = "crosswatch.io/watchstatus"

// write brings one object to what it should be, by at most one request; published is what it is, or nil. Only a new object takes
// two, since the API server drops the status of what it creates.
//
// Ours are the reference to the XRD and the status, all of it. Other owners, labels and annotations are not looked at.
func (p *Publisher) write(ctx context.Context, w publication, published *v1alpha1.DependencyWatchStatus) error {
	if published == nil {
		if err := p.applyMetadata(ctx, w); err != nil {
			return err
		}
		published = &v1alpha1.DependencyWatchStatus{}
	} else if !isOwned(published, w.owner) {
		return p.applyMetadata(ctx, w)
	}

	now := metav1.NewTime(p.clock.Now())
	w.status.Conditions = since(now, published.Status.Conditions, w.status.Conditions)
	w.status.LastPublishedTime = published.Status.LastPublishedTime
	if isFresh(w.status.LastPublishedTime, now.Time) && equality.Semantic.DeepEqual(published.Status, w.status) {
		return nil
	}
	w.status.LastPublishedTime = &now
	return p.applyStatus(ctx, w)
}

func isOwned(published *v1alpha1.DependencyWatchStatus, owner *metav1.OwnerReference) bool {
	return owner == nil || slices.ContainsFunc(published.OwnerReferences, func(r metav1.OwnerReference) bool {
		return equality.Semantic.DeepEqual(r, *owner)
	})
}

// isFresh says whether what was published at that time needs no heartbeat. A time to come is nobody's who publishes.
func isFresh(published *metav1.Time, now time.Time) bool {
	return published != nil && !published.After(now) && now.Sub(published.Time) < Heartbeat
}

func (p *Publisher) applyMetadata(ctx context.Context, w publication) error {
	object := objectOf(w.name)
	if w.owner != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*w.owner})
	}
	if err := p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot apply DependencyWatchStatus %q: %w", w.name, err)
	}
	return nil
}

// applyStatus replaces the status. An object that was deleted meanwhile is made again when it is due the next time.
func (p *Publisher) applyStatus(ctx context.Context, w publication) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&w.status)
	if err != nil {
		return fmt.Errorf("cannot write DependencyWatchStatus %q: %w", w.name, err)
	}
	object := objectOf(w.name)
	object.Object["status"] = status
	err = p.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
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
