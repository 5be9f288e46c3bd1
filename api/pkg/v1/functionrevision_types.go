// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// FunctionRevisionSpec says which version of a function to run, and how.
type FunctionRevisionSpec struct {
	// DesiredState says whether this revision is in force.
	DesiredState RevisionDesiredState `json:"desiredState"`

	// Image that the function is packaged and runs as.
	Image string `json:"image"`

	// Revision number; the highest is the newest.
	Revision int64 `json:"revision"`

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

	// TLSServerSecretName is the Secret with the certificate that the function serves with.
	// +optional
	TLSServerSecretName *string `json:"tlsServerSecretName,omitempty"`

	// TLSClientSecretName is the Secret with the certificate that the function calls others with.
	// +optional
	TLSClientSecretName *string `json:"tlsClientSecretName,omitempty"`
}

// FunctionRevisionStatus is what was observed of a FunctionRevision.
type FunctionRevisionStatus struct {
	commonv1.ConditionedStatus `json:",inline"`

	// Endpoint is the gRPC target at which the function is called.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Capabilities that the function's package declares; none where that isn't known.
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`

	// ResolvedImage is the image that is used for spec.image.
	// +optional
	ResolvedImage string `json:"resolvedImage,omitempty"`

	// ObjectRefs name the objects that the revision installed.
	// +optional
	ObjectRefs []ObjectReference `json:"objectRefs,omitempty"`

	// FoundDependencies is how many dependencies the package declares.
	// +optional
	FoundDependencies int64 `json:"foundDependencies,omitempty"`

	// InstalledDependencies is how many of them are installed.
	// +optional
	InstalledDependencies int64 `json:"installedDependencies,omitempty"`

	// InvalidDependencies is how many of them are installed in a version that doesn't fit.
	// +optional
	InvalidDependencies int64 `json:"invalidDependencies,omitempty"`

	// TLSServerSecretName is the Secret with the certificate that the function serves with.
	// +optional
	TLSServerSecretName *string `json:"tlsServerSecretName,omitempty"`

	// TLSClientSecretName is the Secret with the certificate that the function calls others with.
	// +optional
	TLSClientSecretName *string `json:"tlsClientSecretName,omitempty"`

	// AppliedImageConfigRefs name configurations that changed how the package was fetched.
	// +optional
	AppliedImageConfigRefs []ImageConfigReference `json:"appliedImageConfigRefs,omitempty"`
}

// FunctionRevision is one version of a Function.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	Spec FunctionRevisionSpec `json:"spec,omitempty"`
	// +optional
	Status FunctionRevisionStatus `json:"status,omitempty"`
}

// FunctionRevisionList is a list of FunctionRevisions.
// +kubebuilder:object:root=true
type FunctionRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FunctionRevision `json:"items"`
}
