// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// CompositionRevisionSpec is that of the Composition at the time of the snapshot, and its place in the order of snapshots.
type CompositionRevisionSpec struct {
	// CompositeTypeRef names the XR kind, in its referenceable version.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="compositeTypeRef is immutable"
	CompositeTypeRef TypeReference `json:"compositeTypeRef"`

	// Mode of composing.
	// +kubebuilder:default=Pipeline
	// +optional
	Mode CompositionMode `json:"mode,omitempty"`

	// Pipeline of functions, called in this order.
	// +listType=map
	// +listMapKey=step
	// +optional
	Pipeline []PipelineStep `json:"pipeline,omitempty"`

	// WriteConnectionSecretsToNamespace is where connection secrets of LegacyCluster XRs go.
	// +optional
	WriteConnectionSecretsToNamespace *string `json:"writeConnectionSecretsToNamespace,omitempty"`

	// Revision number; the highest is the newest. A Composition that returns to an earlier content raises that snapshot's.
	Revision int64 `json:"revision"`
}

// CompositionRevisionStatus is what was observed of a CompositionRevision.
type CompositionRevisionStatus struct {
	commonv1.ConditionedStatus `json:",inline"`
}

// CompositionRevision is a snapshot of a Composition.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=crossplane,shortName=comprev
// +kubebuilder:printcolumn:name="REVISION",type="string",JSONPath=".spec.revision"
// +kubebuilder:printcolumn:name="XR-KIND",type="string",JSONPath=".spec.compositeTypeRef.kind"
// +kubebuilder:printcolumn:name="XR-APIVERSION",type="string",JSONPath=".spec.compositeTypeRef.apiVersion"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type CompositionRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec CompositionRevisionSpec `json:"spec,omitempty"`
	// +optional
	Status CompositionRevisionStatus `json:"status,omitempty"`
}

// CompositionRevisionList is a list of CompositionRevisions.
// +kubebuilder:object:root=true
type CompositionRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CompositionRevision `json:"items"`
}

// SpecOf returns what a revision of that number keeps of a Composition's spec. It shares memory with the spec.
func SpecOf(spec CompositionSpec, revision int64) CompositionRevisionSpec {
	return CompositionRevisionSpec{
		CompositeTypeRef:                  spec.CompositeTypeRef,
		Mode:                              spec.Mode,
		Pipeline:                          spec.Pipeline,
		WriteConnectionSecretsToNamespace: spec.WriteConnectionSecretsToNamespace,
		Revision:                          revision,
	}
}
