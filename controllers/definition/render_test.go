// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

const authorSchema = `{
	"type": "object",
	"description": "A room.",
	"x-kubernetes-validations": [{"rule": "has(self.spec)"}],
	"properties": {
		"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20, "pattern": "^a"}}},
		"spec": {
			"type": "object",
			"description": "What is wanted.",
			"required": ["size"],
			"oneOf": [{"required": ["size"]}],
			"x-kubernetes-preserve-unknown-fields": true,
			"x-kubernetes-validations": [{"rule": "self.size > 0"}],
			"properties": {"size": {"type": "integer"}}
		},
		"status": {
			"type": "object",
			"description": "What there is.",
			"required": ["doors"],
			"x-kubernetes-validations": [{"rule": "self.doors >= 0"}],
			"properties": {"doors": {"type": "integer"}, "conditions": {"type": "string"}}
		},
		"other": {"type": "string"}
	}
}`

// roomXRD returns an XRD of that scope, changed as the test needs it.
func roomXRD(scope v1.Scope, change ...func(*v1.CompositeResourceDefinition)) *v1.CompositeResourceDefinition {
	xrd := &v1.CompositeResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "rooms.example.org", UID: "xrd-uid", Generation: 3},
		Spec: v1.CompositeResourceDefinitionSpec{
			Group: "example.org",
			Names: extv1.CustomResourceDefinitionNames{Kind: "Room", Plural: "rooms"},
			Scope: &scope,
			Versions: []v1.CompositeResourceDefinitionVersion{{
				Name: "v1", Served: true, Referenceable: true,
				Schema: &v1.CompositeResourceValidation{OpenAPIV3Schema: runtime.RawExtension{Raw: []byte(authorSchema)}},
			}},
		},
	}
	for _, c := range change {
		c(xrd)
	}
	return xrd
}

func withSchema(schema string) func(*v1.CompositeResourceDefinition) {
	return func(xrd *v1.CompositeResourceDefinition) {
		xrd.Spec.Versions[0].Schema = &v1.CompositeResourceValidation{OpenAPIV3Schema: runtime.RawExtension{Raw: []byte(schema)}}
	}
}

func mustRender(t *testing.T, xrd *v1.CompositeResourceDefinition) *extv1.CustomResourceDefinition {
	t.Helper()
	crd, err := Render(xrd)
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	return crd
}

func names(properties map[string]extv1.JSONSchemaProps) []string {
	return slices.Sorted(maps.Keys(properties))
}

func TestRenderIsValid(t *testing.T) {
	scopes := map[v1.Scope]extv1.ResourceScope{
		v1.ScopeNamespaced:    extv1.NamespaceScoped,
		v1.ScopeCluster:       extv1.ClusterScoped,
		v1.ScopeLegacyCluster: extv1.ClusterScoped,
	}
	variants := map[string][]func(*v1.CompositeResourceDefinition){
		"Full":    nil,
		"Empty":   {withSchema(`{}`)},
		"NoProps": {withSchema(`{"type": "object", "properties": {"spec": {"type": "object"}}}`)},
		"Manual": {func(xrd *v1.CompositeResourceDefinition) {
			xrd.Spec.DefaultCompositionUpdatePolicy = ptr.To(v1.UpdateManual)
		}},
		"Scale": {withSchema(`{"properties": {"spec": {"properties": {"n": {"type": "integer"}}}, "status": {"properties": {"n": {"type": "integer"}}}}}`),
			func(xrd *v1.CompositeResourceDefinition) {
				xrd.Spec.Versions[0].Subresources = &v1.CompositeResourceSubresources{Scale: &extv1.CustomResourceSubresourceScale{
					SpecReplicasPath: ".spec.n", StatusReplicasPath: ".status.n",
				}}
			}},
	}
	for scope, want := range scopes {
		for name, variant := range variants {
			t.Run(string(scope)+"/"+name, func(t *testing.T) {
				crd := mustRender(t, roomXRD(scope, variant...))
				if crd.Spec.Scope != want {
					t.Errorf("scope: want %s, got %s", want, crd.Spec.Scope)
				}
				if errs := validate(t, crd); len(errs) > 0 {
					t.Errorf("the API server would refuse the CRD: %v", errs)
				}
			})
		}
	}
}

// validate does what the API server does with a CRD that is created.
func validate(t *testing.T, crd *extv1.CustomResourceDefinition) []string {
	t.Helper()
	defaulted := crd.DeepCopy()
	extv1.SetObjectDefaults_CustomResourceDefinition(defaulted)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(defaulted, internal, nil); err != nil {
		t.Fatalf("convert: %v", err)
	}
	var errs []string
	for _, err := range validation.ValidateCustomResourceDefinition(context.Background(), internal) {
		errs = append(errs, err.Error())
	}
	return errs
}

func TestRenderFields(t *testing.T) {
	engine := []string{
		"compositionRef", "compositionRevisionRef", "compositionRevisionSelector", "compositionSelector",
		"compositionUpdatePolicy", "resourceRefs",
	}
	legacy := slices.Sorted(slices.Values(append([]string{"claimRef", "size", "writeConnectionSecretToRef"}, engine...)))
	cases := map[v1.Scope]struct {
		spec, crossplane, refs, status []string
		composition                    string
	}{
		v1.ScopeNamespaced: {
			spec: []string{"crossplane", "size"}, crossplane: engine, refs: []string{"apiVersion", "kind", "name"},
			status:      []string{"conditions", "doors", "lastHandledReconcileAt"},
			composition: ".spec.crossplane.compositionRef.name",
		},
		v1.ScopeCluster: {
			spec: []string{"crossplane", "size"}, crossplane: engine, refs: []string{"apiVersion", "kind", "name", "namespace"},
			status:      []string{"conditions", "doors", "lastHandledReconcileAt"},
			composition: ".spec.crossplane.compositionRef.name",
		},
		v1.ScopeLegacyCluster: {
			spec: legacy, refs: []string{"apiVersion", "kind", "name", "namespace"},
			status:      []string{"claimConditionTypes", "conditions", "connectionDetails", "doors", "lastHandledReconcileAt"},
			composition: ".spec.compositionRef.name",
		},
	}
	for scope, want := range cases {
		t.Run(string(scope), func(t *testing.T) {
			version := mustRender(t, roomXRD(scope)).Spec.Versions[0]
			root := version.Schema.OpenAPIV3Schema
			spec, status := root.Properties["spec"], root.Properties["status"]
			fields := spec.Properties
			if scope != v1.ScopeLegacyCluster {
				fields = spec.Properties["crossplane"].Properties
				if diff := cmp.Diff(want.crossplane, names(fields)); diff != "" {
					t.Errorf("spec.crossplane (-want +got):\n%s", diff)
				}
			}
			for what, pair := range map[string][2][]string{
				"spec":         {want.spec, names(spec.Properties)},
				"status":       {want.status, names(status.Properties)},
				"resourceRefs": {want.refs, names(fields["resourceRefs"].Items.Schema.Properties)},
			} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			column := slices.IndexFunc(version.AdditionalPrinterColumns, func(c extv1.CustomResourceColumnDefinition) bool { return c.Name == "COMPOSITION" })
			if got := version.AdditionalPrinterColumns[column].JSONPath; got != want.composition {
				t.Errorf("column COMPOSITION: want %s, got %s", want.composition, got)
			}
		})
	}
}

func TestRenderKeepsTheAuthorsSchema(t *testing.T) {
	root := mustRender(t, roomXRD(v1.ScopeNamespaced)).Spec.Versions[0].Schema.OpenAPIV3Schema
	spec, status := root.Properties["spec"], root.Properties["status"]
	if root.Description != "A room." || len(root.XValidations) != 1 || !slices.Equal(root.Required, []string{"spec"}) {
		t.Errorf("root: got description %q, %d rules, required %v", root.Description, len(root.XValidations), root.Required)
	}
	if _, ok := root.Properties["other"]; ok {
		t.Error("root: a property beside spec and status was kept")
	}
	if spec.Description != "What is wanted." || len(spec.XValidations) != 1 || len(spec.OneOf) != 1 ||
		!slices.Equal(spec.Required, []string{"size"}) || !ptr.Deref(spec.XPreserveUnknownFields, false) {
		t.Errorf("spec: something of the author's is missing: %+v", spec)
	}
	if status.Description != "What there is." || len(status.XValidations) != 1 || !slices.Equal(status.Required, []string{"doors"}) {
		t.Errorf("status: something of the author's is missing: %+v", status)
	}
	if got := status.Properties["conditions"].Type; got != "array" {
		t.Errorf("status.conditions: want the engine's array, got %s", got)
	}
}

func TestRenderNameLength(t *testing.T) {
	limited := func(length string) string {
		return `{"properties": {"metadata": {"properties": {"name": {"maxLength": ` + length + `}}}}}`
	}
	cases := map[string]struct {
		schema string
		want   int64
	}{
		"Default": {schema: `{}`, want: 63},
		"Shorter": {schema: limited("20"), want: 20},
		"Longer":  {schema: limited("200"), want: 63},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := mustRender(t, roomXRD(v1.ScopeCluster, withSchema(tc.schema))).Spec.Versions[0].Schema.OpenAPIV3Schema
			if got := root.Properties["metadata"].Properties["name"].MaxLength; got == nil || *got != tc.want {
				t.Errorf("want maxLength %d, got %v", tc.want, got)
			}
		})
	}
}

func TestRenderMetadata(t *testing.T) {
	xrd := roomXRD(v1.ScopeNamespaced, func(xrd *v1.CompositeResourceDefinition) {
		xrd.Labels = map[string]string{"team": "a", "tier": "1"}
		xrd.Annotations = map[string]string{"note": "the XRD's own"}
		xrd.Spec.Names.Categories = []string{"rooms"}
		xrd.Spec.Metadata = &v1.CompositeResourceDefinitionSpecMetadata{
			Labels:      map[string]string{"team": "b"},
			Annotations: map[string]string{"page": "rooms"},
		}
		xrd.Spec.Versions[0].AdditionalPrinterColumns = []extv1.CustomResourceColumnDefinition{{Name: "SIZE", Type: "integer", JSONPath: ".spec.size"}}
	})
	crd := mustRender(t, xrd)

	if diff := cmp.Diff(map[string]string{"team": "b", "tier": "1"}, crd.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"page": "rooms"}, crd.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(crd, xrd) {
		t.Error("the XRD does not control the CRD")
	}
	if diff := cmp.Diff([]string{"rooms", "composite"}, crd.Spec.Names.Categories); diff != "" {
		t.Errorf("categories (-want +got):\n%s", diff)
	}
	var columns []string
	for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		columns = append(columns, c.Name)
	}
	want := []string{"SIZE", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"}
	if diff := cmp.Diff(want, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"rooms"}, xrd.Spec.Names.Categories); diff != "" {
		t.Errorf("the XRD was changed (-want +got):\n%s", diff)
	}
}

func TestRenderRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*v1.CompositeResourceDefinition)
		want   string
	}{
		"NoSchema":   {change: func(xrd *v1.CompositeResourceDefinition) { xrd.Spec.Versions[0].Schema = nil }, want: "no schema"},
		"NoJSON":     {change: withSchema(`{"type": `), want: "cannot read schema"},
		"List":       {change: withSchema(`[]`), want: "cannot read schema"},
		"RootString": {change: withSchema(`{"type": "string"}`), want: `schema.openAPIV3Schema: type must be "object"`},
		"SpecArray":  {change: withSchema(`{"properties": {"spec": {"type": "array"}}}`), want: "properties.spec: type must be"},
		"StatusBool": {change: withSchema(`{"properties": {"status": {"type": "boolean"}}}`), want: "properties.status: type must be"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Render(roomXRD(v1.ScopeNamespaced, tc.change))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `version "v1"`) {
				t.Errorf("want an error of version \"v1\" with %q, got %v", tc.want, err)
			}
		})
	}
}
