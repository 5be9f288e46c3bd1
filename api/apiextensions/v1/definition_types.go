// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// Scope of an XR kind.
// +kubebuilder:validation:Enum=LegacyCluster;Namespaced;Cluster
type Scope string

// Scopes.
const (
	// ScopeNamespaced XRs are in a namespace and compose only there.
	ScopeNamespaced Scope = "Namespaced"
	// ScopeCluster XRs are cluster-scoped and compose in any scope.
	ScopeCluster Scope = "Cluster"
	// ScopeLegacyCluster XRs are cluster-scoped and keep the engine's fields directly in their spec.
	ScopeLegacyCluster Scope = "LegacyCluster"
)

// UpdatePolicy says which revision of its Composition an XR uses.
// +kubebuilder:validation:Enum=Automatic;Manual
type UpdatePolicy string

// Update policies.
const (
	// UpdateAutomatic follows the newest revision.
	UpdateAutomatic UpdatePolicy = "Automatic"
	// UpdateManual stays with the revision that is named.
	UpdateManual UpdatePolicy = "Manual"
)

// CompositeDeletePolicy says how an XR goes when its claim does.
// +kubebuilder:validation:Enum=Background;Foreground
type CompositeDeletePolicy string

// Delete policies.
const (
	CompositeDeleteBackground CompositeDeletePolicy = "Background"
	CompositeDeleteForeground CompositeDeletePolicy = "Foreground"
)

// CompositeResourceDefinitionSpec defines an XR kind.
// +kubebuilder:validation:XValidation:rule="self.scope == 'LegacyCluster' || !has(self.claimNames)",message="claimNames need scope LegacyCluster"
// +kubebuilder:validation:XValidation:rule="self.scope == 'LegacyCluster' || !has(self.connectionSecretKeys)",message="connectionSecretKeys need scope LegacyCluster"
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
	// +kubebuilder:default=LegacyCluster
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scope is immutable"
	// +optional
	Scope *Scope `json:"scope,omitempty"`

	// ClaimNames of a claim kind. They are accepted so that existing definitions can be used, but claims are not offered.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="claimNames are immutable"
	// +kubebuilder:validation:XValidation:rule="self.plural == self.plural.lowerAscii()",message="plural must be lower case"
	// +kubebuilder:validation:XValidation:rule="!has(self.singular) || self.singular == self.singular.lowerAscii()",message="singular must be lower case"
	// +optional
	ClaimNames *extv1.CustomResourceDefinitionNames `json:"claimNames,omitempty"`

	// ConnectionSecretKeys are the keys that a LegacyCluster XR's connection secret may have; all, if none is listed.
	// +optional
	ConnectionSecretKeys []string `json:"connectionSecretKeys,omitempty"`

	// DefaultCompositeDeletePolicy is how an XR is deleted with its claim.
	// +kubebuilder:default=Background
	// +optional
	DefaultCompositeDeletePolicy *CompositeDeletePolicy `json:"defaultCompositeDeletePolicy,omitempty"`

	// DefaultCompositionRef names the Composition of XRs that neither name nor select one.
	// +optional
	DefaultCompositionRef *CompositionReference `json:"defaultCompositionRef,omitempty"`

	// EnforcedCompositionRef names the Composition of all XRs, whatever they ask for.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="enforcedCompositionRef is immutable"
	// +optional
	EnforcedCompositionRef *CompositionReference `json:"enforcedCompositionRef,omitempty"`

	// DefaultCompositionUpdatePolicy is the update policy of XRs that have none.
	// +kubebuilder:default=Automatic
	// +optional
	DefaultCompositionUpdatePolicy *UpdatePolicy `json:"defaultCompositionUpdatePolicy,omitempty"`

	// DefaultCompositionRevisionSelector selects revisions for XRs that have no selector of their own.
	// +optional
	DefaultCompositionRevisionSelector *metav1.LabelSelector `json:"defaultCompositionRevisionSelector,omitempty"`

	// Versions of the XR kind, exactly one of them referenceable.
	Versions []CompositeResourceDefinitionVersion `json:"versions"`

	// Conversion between the versions; without it only their apiVersion differs.
	// +kubebuilder:validation:XValidation:rule="self.strategy == 'Webhook' && has(self.webhook)",message="conversion needs strategy Webhook, and webhook set"
	// +optional
	Conversion *extv1.CustomResourceConversion `json:"conversion,omitempty"`

	// Metadata for the CRD that is made of this definition.
	// +optional
	Metadata *CompositeResourceDefinitionSpecMetadata `json:"metadata,omitempty"`
}

// CompositeResourceDefinitionSpecMetadata is put on the CRD.
type CompositeResourceDefinitionSpecMetadata struct {
	// Labels for the CRD.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations for the CRD.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// CompositeResourceDefinitionStatus is what was observed of an XR kind.
type CompositeResourceDefinitionStatus struct {
	commonv1.ConditionedStatus `json:",inline"`

	// Controllers that run for this definition.
	// +optional
	Controllers CompositeResourceDefinitionControllerStatus `json:"controllers,omitzero"`
}

// CompositeResourceDefinitionControllerStatus names the kinds that controllers reconcile.
type CompositeResourceDefinitionControllerStatus struct {
	// CompositeResourceType is the XR kind that a controller reconciles, in its referenceable version.
	// +optional
	CompositeResourceType TypeReference `json:"compositeResourceType,omitzero"`

	// CompositeResourceClaimType is kept from where claims were offered; nothing sets it.
	// +optional
	CompositeResourceClaimType TypeReference `json:"compositeResourceClaimType,omitzero"`
}

// CompositeResourceDefinition (XRD) defines an XR kind. Its name is <plural>.<group>.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	Status CompositeResourceDefinitionStatus `json:"status,omitempty"`
}

// CompositeResourceDefinitionList is a list of XRDs.
// +kubebuilder:object:root=true
type CompositeResourceDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CompositeResourceDefinition `json:"items"`
}
