// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// Definition is an XRD of one version, v1, whose plural is the kind's name and an s.
// The schema is JSON.
func Definition(group, kind string, scope v1.Scope, openAPI string) *v1.CompositeResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	xrd := &v1.CompositeResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group}}
	xrd.Spec.Group = group
	xrd.Spec.Names.Kind = kind
	xrd.Spec.Names.Plural = plural
	xrd.Spec.Scope = &scope
	xrd.Spec.Versions = []v1.CompositeResourceDefinitionVersion{{
		Name: "v1", Served: true, Referenceable: true,
		Schema: &v1.CompositeResourceValidation{OpenAPIV3Schema: runtime.RawExtension{Raw: []byte(openAPI)}},
	}}
	return xrd
}

// Composition is one for the kind, which it is named after.
func Composition(kind schema.GroupVersionKind, steps ...v1.PipelineStep) *v1.Composition {
	return &v1.Composition{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(kind.Kind)},
		Spec: v1.CompositionSpec{
			CompositeTypeRef: v1.TypeReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind},
			Mode:             v1.CompositionModePipeline,
			Pipeline:         steps,
		},
	}
}
