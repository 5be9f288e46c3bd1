// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

var (
	definitionKind = v1.GroupVersion.WithKind(v1.KindCompositeResourceDefinition)
	crdKind        = extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
)

// resourceOf is the resource of the XR kind in its referenceable version.
func resourceOf(xrd *v1.CompositeResourceDefinition) schema.GroupVersionResource {
	return xrd.GetCompositeGroupVersionKind().GroupVersion().WithResource(xrd.Spec.Names.Plural)
}
