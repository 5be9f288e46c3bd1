// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

func TestGetCompositeGroupVersionKind(t *testing.T) {
	tests := map[string]struct {
		versions []v1.CompositeResourceDefinitionVersion
		want     string
	}{
		"Referenceable": {versions: []v1.CompositeResourceDefinitionVersion{{Name: "v1alpha1", Served: true}, {Name: "v1", Referenceable: true}}, want: "v1"},
		"None":          {versions: []v1.CompositeResourceDefinitionVersion{{Name: "v1alpha1", Served: true}}, want: ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			xrd := &v1.CompositeResourceDefinition{}
			xrd.Spec.Group, xrd.Spec.Names.Kind, xrd.Spec.Versions = "example.org", "Bucket", tc.versions
			want := schema.GroupVersionKind{Group: "example.org", Version: tc.want, Kind: "Bucket"}
			if got := xrd.GetCompositeGroupVersionKind(); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestGetScope(t *testing.T) {
	namespaced := v1.ScopeNamespaced
	tests := map[string]struct {
		scope *v1.Scope
		want  v1.Scope
	}{
		"Set":     {scope: &namespaced, want: v1.ScopeNamespaced},
		"Default": {want: v1.ScopeLegacyCluster},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			xrd := &v1.CompositeResourceDefinition{Spec: v1.CompositeResourceDefinitionSpec{Scope: tc.scope}}
			if got := xrd.GetScope(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
