// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kind in this package.
var GroupVersion = schema.GroupVersion{Group: "apiextensions.crossplane.io", Version: "v2"}

// AddToScheme registers the kind of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &CompositeResourceDefinition{}, &CompositeResourceDefinitionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
