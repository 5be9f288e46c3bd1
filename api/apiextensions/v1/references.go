// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// TypeReference names a kind in one version.
type TypeReference struct {
	// APIVersion is group/version, or just the version of the core group.
	APIVersion string `json:"apiVersion"`

	// Kind of the type.
	Kind string `json:"kind"`
}

// TypeReferenceTo returns the reference to that kind.
func TypeReferenceTo(gvk schema.GroupVersionKind) TypeReference {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return TypeReference{APIVersion: apiVersion, Kind: kind}
}

// GroupVersionKind returns the kind that is named; its version is empty where APIVersion is malformed.
func (r TypeReference) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// CompositionReference names a Composition.
type CompositionReference struct {
	// Name of the Composition.
	Name string `json:"name"`
}

// FunctionReference names a Function.
type FunctionReference struct {
	// Name of the Function.
	Name string `json:"name"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Namespace of the Secret.
	Namespace string `json:"namespace"`

	// Name of the Secret.
	Name string `json:"name"`
}
