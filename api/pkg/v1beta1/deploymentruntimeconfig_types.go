// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TemplateMetadata is the metadata that a template gives to an object.
type TemplateMetadata struct {
	// Name of the object. Only a ServiceAccount can be given one.
	// +optional
	Name *string `json:"name,omitempty"`

	// Labels of the object.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the object.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// DeploymentTemplate is what a function's Deployment is made of.
type DeploymentTemplate struct {
	// Metadata of the Deployment.
	// +optional
	Metadata *TemplateMetadata `json:"metadata,omitempty"`

	// Spec of the Deployment. The function runs in the container named package-runtime, whose image need not be given.
	// +optional
	Spec *appsv1.DeploymentSpec `json:"spec,omitempty"`
}

// ServiceTemplate is what a function's Services are made of.
type ServiceTemplate struct {
	// Metadata of the Services.
	// +optional
	Metadata *TemplateMetadata `json:"metadata,omitempty"`
}

// ServiceAccountTemplate is what the ServiceAccount of a function's pods is made of.
type ServiceAccountTemplate struct {
	// Metadata of the ServiceAccount. One that is named here may be there already, and stays when the function goes.
	// +optional
	Metadata *TemplateMetadata `json:"metadata,omitempty"`
}

// DeploymentRuntimeConfigSpec says how functions are run.
type DeploymentRuntimeConfigSpec struct {
	// DeploymentTemplate is what the Deployment of a function is made of.
	// +optional
	DeploymentTemplate *DeploymentTemplate `json:"deploymentTemplate,omitempty"`

	// ServiceTemplate is what the Services of a function are made of.
	// +optional
	ServiceTemplate *ServiceTemplate `json:"serviceTemplate,omitempty"`

	// ServiceAccountTemplate is what the ServiceAccount of a function's pods is made of.
	// +optional
	ServiceAccountTemplate *ServiceAccountTemplate `json:"serviceAccountTemplate,omitempty"`
}

// DeploymentRuntimeConfig configures how the functions that refer to it are run. The one named default is for those that refer
// to none; it need not exist.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=crossplane
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type DeploymentRuntimeConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec DeploymentRuntimeConfigSpec `json:"spec,omitempty"`
}

// DeploymentRuntimeConfigList is a list of DeploymentRuntimeConfigs.
// +kubebuilder:object:root=true
type DeploymentRuntimeConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DeploymentRuntimeConfig `json:"items"`
}
