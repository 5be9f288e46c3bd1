// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// categoryComposite is the category of every XR kind, for kubectl get composite.
const categoryComposite = "composite"

// Render returns the CRD that an XRD defines, without what the API server defaults. It shares no memory with the XRD. It fails
// where a version's schema can't be that of an XR; what else is wrong with a schema is for the API server to say.
func Render(xrd *v1.CompositeResourceDefinition) (*extv1.CustomResourceDefinition, error) {
	xrd = xrd.DeepCopy()
	crd := &extv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: extv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            xrd.Name,
			Labels:          xrd.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(xrd, definitionKind)},
		},
		Spec: extv1.CustomResourceDefinitionSpec{
			Group:      xrd.Spec.Group,
			Names:      xrd.Spec.Names,
			Scope:      renderScope(xrd.GetScope()),
			Conversion: xrd.Spec.Conversion,
		},
	}
	if m := xrd.Spec.Metadata; m != nil {
		crd.Labels = union(crd.Labels, m.Labels)
		crd.Annotations = m.Annotations
	}
	if names := &crd.Spec.Names; !slices.Contains(names.Categories, categoryComposite) {
		names.Categories = append(names.Categories, categoryComposite)
	}

	for _, v := range xrd.Spec.Versions {
		version, err := renderVersion(xrd, v)
		if err != nil {
			return nil, fmt.Errorf("version %q: %w", v.Name, err)
		}
		crd.Spec.Versions = append(crd.Spec.Versions, version)
	}
	return crd, nil
}

func renderScope(scope v1.Scope) extv1.ResourceScope {
	if scope == v1.ScopeNamespaced {
		return extv1.NamespaceScoped
	}
	return extv1.ClusterScoped
}

func renderVersion(xrd *v1.CompositeResourceDefinition, v v1.CompositeResourceDefinitionVersion) (extv1.CustomResourceDefinitionVersion, error) {
	schema, err := renderSchema(xrd, v.Schema)
	if err != nil {
		return extv1.CustomResourceDefinitionVersion{}, err
	}
	subresources := &extv1.CustomResourceSubresources{Status: &extv1.CustomResourceSubresourceStatus{}}
	if v.Subresources != nil {
		subresources.Scale = v.Subresources.Scale
	}
	return extv1.CustomResourceDefinitionVersion{
		Name:                     v.Name,
		Served:                   v.Served,
		Storage:                  v.Referenceable,
		Deprecated:               v.Deprecated != nil && *v.Deprecated,
		DeprecationWarning:       v.DeprecationWarning,
		Schema:                   &extv1.CustomResourceValidation{OpenAPIV3Schema: schema},
		Subresources:             subresources,
		AdditionalPrinterColumns: append(v.AdditionalPrinterColumns, printerColumns(xrd.GetScope())...),
	}, nil
}

// printerColumns are the columns of every XR kind, after those that its author wants.
func printerColumns(scope v1.Scope) []extv1.CustomResourceColumnDefinition {
	engine := ".spec.crossplane"
	if scope == v1.ScopeLegacyCluster {
		engine = ".spec"
	}
	return []extv1.CustomResourceColumnDefinition{
		{Name: "SYNCED", Type: "string", JSONPath: ".status.conditions[?(@.type=='Synced')].status"},
		{Name: "READY", Type: "string", JSONPath: ".status.conditions[?(@.type=='Ready')].status"},
		{Name: "COMPOSITION", Type: "string", JSONPath: engine + ".compositionRef.name"},
		{Name: "COMPOSITIONREVISION", Type: "string", JSONPath: engine + ".compositionRevisionRef.name", Priority: 1},
		{Name: "AGE", Type: "date", JSONPath: ".metadata.creationTimestamp"},
	}
}

// union returns both maps in one; of a key in both, the second's value counts.
func union(first, second map[string]string) map[string]string {
	both := make(map[string]string, len(first)+len(second))
	maps.Copy(both, first)
	maps.Copy(both, second)
	return both
}
