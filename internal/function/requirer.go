// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// A Requirer keeps what XRs require. It is safe for concurrent use.
type Requirer interface {
	// Require records the requirement and returns where to read what it refers
	// to, once the watch of its kind is in service. It waits for that a second
	// at most; after an error the requirement is recorded all the same. An error
	// whose Waiting method returns true says that the watch is still starting,
	// and that the XR is woken when it has.
	Require(ctx context.Context, xr types.NamespacedName, r dependency.Requirement) (Reader, error)

	// Requirements returns what the step's function is known to have asked for.
	Requirements(xr types.NamespacedName, step string) []dependency.Requirement
}

// A Reader reads the objects of one kind from what its watch keeps. The objects
// are shared: nobody changes them.
type Reader interface {
	// Get returns nil if there is no such object.
	Get(namespace, name string) *unstructured.Unstructured

	// List returns the objects with all of these labels; in every namespace if
	// the namespace is empty.
	List(namespace string, labels map[string]string) []*unstructured.Unstructured
}

// A waitingError tells whether the watch of a kind is only not ready yet.
type waitingError interface {
	error
	Waiting() bool
}
