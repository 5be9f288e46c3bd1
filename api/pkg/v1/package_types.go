// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/types"

// RevisionActivationPolicy says who puts a new revision into force.
type RevisionActivationPolicy string

// Activation policies.
const (
	// ActivationAutomatic puts the newest revision into force.
	ActivationAutomatic RevisionActivationPolicy = "Automatic"
	// ActivationManual leaves it to people.
	ActivationManual RevisionActivationPolicy = "Manual"
)

// RevisionDesiredState says whether a revision is in force.
type RevisionDesiredState string

// Desired states of a revision.
const (
	RevisionActive   RevisionDesiredState = "Active"
	RevisionInactive RevisionDesiredState = "Inactive"
)

// RuntimeConfigReference names what configures a function's runtime.
type RuntimeConfigReference struct {
	// APIVersion of the configuration.
	// +kubebuilder:default="pkg.crossplane.io/v1beta1"
	// +optional
	APIVersion *string `json:"apiVersion,omitempty"`

	// Kind of the configuration.
	// +kubebuilder:default="DeploymentRuntimeConfig"
	// +optional
	Kind *string `json:"kind,omitempty"`

	// Name of the configuration.
	Name string `json:"name"`
}

// ImageConfigReference names a configuration that changed how a package was fetched.
type ImageConfigReference struct {
	// Name of the configuration.
	Name string `json:"name"`

	// Reason it was applied for.
	Reason string `json:"reason"`
}

// ObjectReference names an object that a revision installed.
type ObjectReference struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	Kind string `json:"kind"`

	// Name of the object.
	Name string `json:"name"`

	// UID of the object.
	// +optional
	UID *types.UID `json:"uid,omitempty"`
}
