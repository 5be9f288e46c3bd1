// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is what the API server says of a kind that it serves.
type Kind struct {
	GVK        schema.GroupVersionKind
	Resource   schema.GroupVersionResource
	Namespaced bool
	// Listable and Watchable say whether the kind has the verbs list and watch.
	Listable, Watchable bool
}

// Discovery is the part of a discovery client that Resolve needs.
type Discovery interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// Resolve asks the API server for the kind, live: a kind may come back with
// another resource or scope, so no answer is worth keeping. The error is a
// NotFound (see apierrors.IsNotFound) if the kind isn't served.
func Resolve(ctx context.Context, d Discovery, gvk schema.GroupVersionKind) (Kind, error) {
	list, err := d.ServerResourcesForGroupVersionWithContext(ctx, gvk.GroupVersion().String())
	if err != nil {
		return Kind{}, fmt.Errorf("cannot discover %s: %w", gvk.GroupVersion(), err)
	}
	for _, r := range list.APIResources {
		if r.Kind != gvk.Kind || strings.Contains(r.Name, "/") {
			continue
		}
		return Kind{
			GVK:        gvk,
			Resource:   gvk.GroupVersion().WithResource(r.Name),
			Namespaced: r.Namespaced,
			Listable:   slices.Contains(r.Verbs, "list"),
			Watchable:  slices.Contains(r.Verbs, "watch"),
		}, nil
	}
	return Kind{}, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, gvk.Version)
}
