// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v2

import (
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// Scope of an XR kind.
// +kubebuilder:validation:Enum=Namespaced;Cluster
type Scope string

// Scopes.
const (
	// ScopeNamespaced XRs are in a namespace and compose only there.
	ScopeNamespaced Scope = "Namespaced"
	// ScopeCluster XRs are cluster-scoped and compose in any scope.
	ScopeCluster Scope = "Cluster"
)

// CompositeResourceDefinitionSpec defines an XR kind.
// +kubebuilder:validation:XValidation:rule="!has(self.claimNames)",message="claimNames are only in v1, with scope LegacyCluster"
// +kubebuilder:validation:XValidation:rule="!has(self.connectionSecretKeys)",message="connectionSecretKeys are only in v1, with scope LegacyCluster"
type CompositeResourceDefinitionSpec struct {
	// Group of the XR kind.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="group is immutable"
	Group string `json:"group"`

	// Names of the XR kind and its resource.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="names are immutable"
	// +kubebuilder:validation:XValidation:rule="self.plural == self.plural.lowerAscii()",message="plural must be lower case"
	// +kubebuilder:validation:XValidation:rule="!has(self.singular) || self.singular == self.singular.lowerAscii()",message="singular must be lower case"
	Names extv1.CustomResourceDefinitionNames `json:"names"`

	// Scope of the XR kind.
	// +kubebuilder:default=Namespaced
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scope is immutable"
	// +optional
	Scope *Scope `json:"scope,omitempty"`

	// ClaimNames can be read of definitions written as v1, but not be set.
	// +optional
	ClaimNames *extv1.CustomResourceDefinitionNames `json:"claimNames,omitempty"`

	// ConnectionSecretKeys can be read of definitions written as v1, but not be set.
	// +optional
	ConnectionSecretKeys []string `json:"connectionSecretKeys,omitempty"`

	// DefaultCompositeDeletePolicy is how an XR is deleted with its claim.
	// +optional
	DefaultCompositeDeletePolicy *v1.CompositeDeletePolicy `json:"defaultCompositeDeletePolicy,omitempty"`

	// DefaultCompositionRef names the Composition of XRs that neither name nor select one.
	// +optional
	DefaultCompositionRef *v1.CompositionReference `json:"defaultCompositionRef,omitempty"`

	// EnforcedCompositionRef names the Composition of all XRs, whatever they ask for.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="enforcedCompositionRef is immutable"
	// +optional
	EnforcedCompositionRef *v1.CompositionReference `json:"enforcedCompositionRef,omitempty"`

	// DefaultCompositionUpdatePolicy is the update policy of XRs that have none.
	// +kubebuilder:default=Automatic
	// +optional
	DefaultCompositionUpdatePolicy *v1.UpdatePolicy `json:"defaultCompositionUpdatePolicy,omitempty"`

	// DefaultCompositionRevisionSelector selects revisions for XRs that have no selector of their own.
	// +optional
	DefaultCompositionRevisionSelector *metav1.LabelSelector `json:"defaultCompositionRevisionSelector,omitempty"`

	// Versions of the XR kind, exactly one of them referenceable.
	Versions []v1.CompositeResourceDefinitionVersion `json:"versions"`

	// Conversion between the versions; without it only their apiVersion differs.
	// +optional
	Conversion *extv1.CustomResourceConversion `json:"conversion,omitempty"`

	// Metadata for the CRD that is made of this definition.
	// +optional
	Metadata *v1.CompositeResourceDefinitionSpecMetadata `json:"metadata,omitempty"`
}

// CompositeResourceDefinition (XRD) defines an XR kind. Its name is <plural>.<group>.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=crossplane,shortName=xrd;xrds
// +kubebuilder:printcolumn:name="ESTABLISHED",type="string",JSONPath=".status.conditions[?(@.type=='Established')].status"
// +kubebuilder:printcolumn:name="OFFERED",type="string",JSONPath=".status.conditions[?(@.type=='Offered')].status"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type CompositeResourceDefinition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec CompositeResourceDefinitionSpec `json:"spec,omitempty"`
	// +optional
	Status v1.CompositeResourceDefinitionStatus `json:"status,omitempty"`
}

// CompositeResourceDefinitionList is a list of XRDs.
// +kubebuilder:object:root=true
type CompositeResourceDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CompositeResourceDefinition `json:"items"`
}
