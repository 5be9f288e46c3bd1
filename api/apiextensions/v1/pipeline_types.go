// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/runtime"

// PipelineStep is one call of a function.
type PipelineStep struct {
	// Step is the name of this step, unique in the pipeline.
	Step string `json:"step"`

	// FunctionRef names the Function to call.
	FunctionRef FunctionReference `json:"functionRef"`

	// Input for the function, an object of a kind that the function knows.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	// +optional
	Input *runtime.RawExtension `json:"input,omitempty"`

	// Credentials that the function is given.
	// +listType=map
	// +listMapKey=name
	// +optional
	Credentials []FunctionCredentials `json:"credentials,omitempty"`

	// Requirements that the function is given from the first call on.
	// +optional
	Requirements *FunctionRequirements `json:"requirements,omitempty"`
}

// CredentialsSource is where a function's credentials come from.
// +kubebuilder:validation:Enum=None;Secret
type CredentialsSource string

// Sources of credentials.
const (
	CredentialsSourceNone   CredentialsSource = "None"
	CredentialsSourceSecret CredentialsSource = "Secret"
)

// FunctionCredentials are given to a function under a name.
// +kubebuilder:validation:XValidation:rule="self.source == 'Secret' && has(self.secretRef)",message="source Secret needs a secretRef"
type FunctionCredentials struct {
	// Name under which the function finds the credentials.
	Name string `json:"name"`

	// Source of the credentials.
	Source CredentialsSource `json:"source"`

	// SecretRef names the Secret whose data are the credentials.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// FunctionRequirements are read before a function is called for the first time.
type FunctionRequirements struct {
	// RequiredResources that the function is given.
	// +listType=map
	// +listMapKey=requirementName
	// +optional
	RequiredResources []RequiredResourceSelector `json:"requiredResources,omitempty"`

	// RequiredSchemas that the function is given.
	// +listType=map
	// +listMapKey=requirementName
	// +optional
	RequiredSchemas []RequiredSchemaSelector `json:"requiredSchemas,omitempty"`
}

// RequiredResourceSelector selects one object by name, or objects by labels: all of the kind, if it names neither.
// +kubebuilder:validation:XValidation:rule="!(has(self.name) && has(self.matchLabels))",message="name and matchLabels exclude each other"
type RequiredResourceSelector struct {
	// RequirementName under which the function finds the objects.
	RequirementName string `json:"requirementName"`

	// APIVersion of the objects.
	APIVersion string `json:"apiVersion"`

	// Kind of the objects.
	Kind string `json:"kind"`

	// Namespace of the objects. Without it a name is that of a cluster-scoped object, and labels match in every namespace.
	// +optional
	Namespace *string `json:"namespace,omitempty"`

	// Name of the one object.
	// +optional
	Name *string `json:"name,omitempty"`

	// MatchLabels that the objects have.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// RequiredSchemaSelector selects the schema of a kind.
type RequiredSchemaSelector struct {
	// RequirementName under which the function finds the schema.
	RequirementName string `json:"requirementName"`

	// APIVersion of the kind.
	APIVersion string `json:"apiVersion"`

	// Kind whose schema is given.
	Kind string `json:"kind"`
}
