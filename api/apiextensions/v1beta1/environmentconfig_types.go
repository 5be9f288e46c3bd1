// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnvironmentConfig is plain data that many XRs share. No controller acts on it; pipelines require it.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,categories=crossplane,shortName=envcfg
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type EnvironmentConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data of any shape.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Data map[string]extv1.JSON `json:"data,omitempty"`
}

// EnvironmentConfigList is a list of EnvironmentConfigs.
// +kubebuilder:object:root=true
type EnvironmentConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EnvironmentConfig `json:"items"`
}
