// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CompositeResourceDefinitionVersion is one version of an XR kind.
type CompositeResourceDefinitionVersion struct {
	// Name of the version, such as v1 or v1alpha2.
	Name string `json:"name"`

	// Referenceable is true of the one version that Compositions name and that the API server stores.
	Referenceable bool `json:"referenceable"`

	// Served is whether the API server offers this version.
	Served bool `json:"served"`

	// Deprecated makes the API server warn whoever uses this version.
	// +optional
	Deprecated *bool `json:"deprecated,omitempty"`

	// DeprecationWarning replaces the API server's own warning.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	DeprecationWarning *string `json:"deprecationWarning,omitempty"`

	// Schema of the XR's spec and status in this version.
	// +optional
	Schema *CompositeResourceValidation `json:"schema,omitempty"`

	// AdditionalPrinterColumns come before those that every XR kind has.
	// +optional
	AdditionalPrinterColumns []extv1.CustomResourceColumnDefinition `json:"additionalPrinterColumns,omitempty"`

	// Subresources beside status, which every XR kind has.
	// +optional
	Subresources *CompositeResourceSubresources `json:"subresources,omitempty"`
}

// CompositeResourceValidation is the schema of one version.
type CompositeResourceValidation struct {
	// OpenAPIV3Schema is a schema as CRDs have it. It is kept as it was written; only the CRD made of it is validated.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	OpenAPIV3Schema runtime.RawExtension `json:"openAPIV3Schema,omitzero"`
}

// CompositeResourceSubresources of one version.
type CompositeResourceSubresources struct {
	// Scale makes kubectl scale and autoscalers work with the XR kind.
	// +optional
	Scale *extv1.CustomResourceSubresourceScale `json:"scale,omitempty"`
}
