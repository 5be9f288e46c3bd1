// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GetScope returns the scope of the XR kind, the default where none is set.
func (d *CompositeResourceDefinition) GetScope() Scope {
	if d.Spec.Scope == nil {
		return ScopeLegacyCluster
	}
	return *d.Spec.Scope
}

// GetCompositeGroupVersionKind returns the XR kind in its referenceable version; the version is empty where none is.
func (d *CompositeResourceDefinition) GetCompositeGroupVersionKind() schema.GroupVersionKind {
	gvk := schema.GroupVersionKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
	if i := slices.IndexFunc(d.Spec.Versions, isReferenceable); i >= 0 {
		gvk.Version = d.Spec.Versions[i].Name
	}
	return gvk
}

func isReferenceable(v CompositeResourceDefinitionVersion) bool { return v.Referenceable }
