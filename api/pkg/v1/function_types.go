// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// FunctionSpec says which function to install, and how.
type FunctionSpec struct {
	// Package is the OCI image, with its registry, that the function is packaged and runs as.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\.\\\\/]+(\\\\.[^\\\\.\\\\/]+)+(\\\\/[^\\\\/:@]+)+(:[^:@]+(@sha256.+)?|@sha256.+)$')",message="package must be an image with registry and tag or digest, such as registry.example.org/team/function:v1.0.0"
	Package string `json:"package"`

	// RevisionActivationPolicy says who puts a new revision into force.
	// +kubebuilder:default=Automatic
	// +optional
	RevisionActivationPolicy *RevisionActivationPolicy `json:"revisionActivationPolicy,omitempty"`

	// RevisionHistoryLimit is how many revisions that are not in force are kept; 0 keeps all.
	// +kubebuilder:default=1
	// +optional
	RevisionHistoryLimit *int64 `json:"revisionHistoryLimit,omitempty"`

	// PackagePullSecrets for the image.
	// +optional
	PackagePullSecrets []corev1.LocalObjectReference `json:"packagePullSecrets,omitempty"`

	// PackagePullPolicy for the image.
	// +kubebuilder:default=IfNotPresent
	// +optional
	PackagePullPolicy *corev1.PullPolicy `json:"packagePullPolicy,omitempty"`

	// IgnoreCrossplaneConstraints installs the function whatever engine version its package asks for.
	// +kubebuilder:default=false
	// +optional
	IgnoreCrossplaneConstraints *bool `json:"ignoreCrossplaneConstraints,omitempty"`

	// SkipDependencyResolution installs the function without what its package depends on.
	// +kubebuilder:default=false
	// +optional
	SkipDependencyResolution *bool `json:"skipDependencyResolution,omitempty"`

	// CommonLabels for all objects that run the function.
	// +optional
	CommonLabels map[string]string `json:"commonLabels,omitempty"`

	// CommonAnnotations for all objects that run the function.
	// +optional
	CommonAnnotations map[string]string `json:"commonAnnotations,omitempty"`

	// RuntimeConfigRef names what configures the function's runtime.
	// +kubebuilder:default={"name":"default"}
	// +optional
	RuntimeConfigRef *RuntimeConfigReference `json:"runtimeConfigRef,omitempty"`
}

// FunctionStatus is what was observed of a Function.
type FunctionStatus struct {
	commonv1.ConditionedStatus `json:",inline"`

	// CurrentRevision is the name of the newest FunctionRevision.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// CurrentIdentifier is the spec.package that CurrentRevision was made of.
	// +optional
	CurrentIdentifier string `json:"currentIdentifier,omitempty"`

	// ResolvedPackage is the image that is used for spec.package.
	// +optional
	ResolvedPackage string `json:"resolvedPackage,omitempty"`

	// AppliedImageConfigRefs name configurations that changed how the package was fetched.
	// +optional
	AppliedImageConfigRefs []ImageConfigReference `json:"appliedImageConfigRefs,omitempty"`
}

// Function is a function to call.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=crossplane;pkg
// +kubebuilder:printcolumn:name="INSTALLED",type="string",JSONPath=".status.conditions[?(@.type=='Installed')].status"
// +kubebuilder:printcolumn:name="HEALTHY",type="string",JSONPath=".status.conditions[?(@.type=='Healthy')].status"
// +kubebuilder:printcolumn:name="PACKAGE",type="string",JSONPath=".spec.package"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Function struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec FunctionSpec `json:"spec,omitempty"`
	// +optional
	Status FunctionStatus `json:"status,omitempty"`
}

// FunctionList is a list of Functions.
// +kubebuilder:object:root=true
type FunctionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Function `json:"items"`
}
