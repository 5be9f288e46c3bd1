// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CompositionMode says how a Composition composes.
// +kubebuilder:validation:Enum=Pipeline
type CompositionMode string

// CompositionModePipeline composes by a pipeline of functions; there is no other mode.
const CompositionModePipeline CompositionMode = "Pipeline"

// CompositionSpec says how XRs of one kind are composed.
// +kubebuilder:validation:XValidation:rule="self.mode == 'Pipeline' && has(self.pipeline)",message="a Composition needs a pipeline"
type CompositionSpec struct {
	// CompositeTypeRef names the XR kind, in its referenceable version.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="compositeTypeRef is immutable"
	CompositeTypeRef TypeReference `json:"compositeTypeRef"`

	// Mode of composing.
	// +kubebuilder:default=Pipeline
	// +optional
	Mode CompositionMode `json:"mode,omitempty"`

	// Pipeline of functions, called in this order.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=99
	// +listType=map
	// +listMapKey=step
	// +optional
	Pipeline []PipelineStep `json:"pipeline,omitempty"`

	// WriteConnectionSecretsToNamespace is where connection secrets of LegacyCluster XRs go.
	// +optional
	WriteConnectionSecretsToNamespace *string `json:"writeConnectionSecretsToNamespace,omitempty"`
}

// Composition says how XRs of one kind are composed. XRs use snapshots of it, its CompositionRevisions.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,categories=crossplane,shortName=comp
// +kubebuilder:printcolumn:name="XR-KIND",type="string",JSONPath=".spec.compositeTypeRef.kind"
// +kubebuilder:printcolumn:name="XR-APIVERSION",type="string",JSONPath=".spec.compositeTypeRef.apiVersion"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Composition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec CompositionSpec `json:"spec,omitempty"`
}

// CompositionList is a list of Compositions.
// +kubebuilder:object:root=true
type CompositionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Composition `json:"items"`
}
