// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// FunctionRevision is one version of a Function.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=crossplane;pkgrev
// +kubebuilder:printcolumn:name="HEALTHY",type="string",JSONPath=".status.conditions[?(@.type=='RevisionHealthy')].status"
// +kubebuilder:printcolumn:name="RUNTIME-HEALTHY",type="string",JSONPath=".status.conditions[?(@.type=='RuntimeHealthy')].status"
// +kubebuilder:printcolumn:name="RUNTIME-ACTIVE",type="string",JSONPath=".status.conditions[?(@.type=='RuntimeActive')].status"
// +kubebuilder:printcolumn:name="IMAGE",type="string",JSONPath=".spec.image"
// +kubebuilder:printcolumn:name="STATE",type="string",JSONPath=".spec.desiredState"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="REVISION",type="string",priority=1,JSONPath=".spec.revision"
// +kubebuilder:printcolumn:name="DEP-FOUND",type="string",priority=1,JSONPath=".status.foundDependencies"
// +kubebuilder:printcolumn:name="DEP-INSTALLED",type="string",priority=1,JSONPath=".status.installedDependencies"
type FunctionRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec pkgv1.FunctionRevisionSpec `json:"spec,omitempty"`
	// +optional
	Status pkgv1.FunctionRevisionStatus `json:"status,omitempty"`
}

// FunctionRevisionList is a list of FunctionRevisions.
// +kubebuilder:object:root=true
type FunctionRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FunctionRevision `json:"items"`
}
