// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	extensionsv1beta1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1beta1"
	extensionsv2 "github.com/crosswatch-io/crosswatch/api/apiextensions/v2"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	pkgv1beta1 "github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
)

// TestTypesKeepWhatTheSchemaKeeps reads a stored object into its Go type and back: a field that the type lacks, or that it
// adds without being asked, would get lost, or be written, by the operator's first update.
func TestTypesKeepWhatTheSchemaKeeps(t *testing.T) {
	const types = `status: {controllers: {compositeResourceType: {apiVersion: example.org/v1, kind: Bucket}}}`
	const functionsFile, environmentsFile = "pkg.crossplane.io_functions.yaml", "apiextensions.crossplane.io_environmentconfigs.yaml"
	tests := map[string]struct {
		file, version string
		text, patch   string
		into          client.Object
	}{
		"CompositeResourceDefinition v1": {
			file: definitionsFile, version: "v1", text: inVersion("v1", definition), patch: types,
			into: &extensionsv1.CompositeResourceDefinition{},
		},
		"CompositeResourceDefinition v2": {
			file: definitionsFile, version: "v2", text: inVersion("v2", definition), patch: types,
			into: &extensionsv2.CompositeResourceDefinition{},
		},
		"CompositeResourceDefinition without a schema": {
			file: definitionsFile, version: "v1", text: inVersion("v1", definition),
			patch: `spec: {versions: [{name: v1, served: true, referenceable: true, schema: {}}]}`,
			into:  &extensionsv1.CompositeResourceDefinition{},
		},
		"Composition": {
			file: compositionsFile, version: "v1", text: composition, into: &extensionsv1.Composition{},
		},
		"CompositionRevision": {
			file: revisionsFile, version: "v1", text: composition, patch: `{kind: CompositionRevision, spec: {revision: 1}}`,
			into: &extensionsv1.CompositionRevision{},
		},
		"EnvironmentConfig": {
			file: environmentsFile, version: "v1beta1", patch: `data: {a: [1, {b: c}]}`,
			text: "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig",
			into: &extensionsv1beta1.EnvironmentConfig{},
		},
		"Function v1": {
			file: functionsFile, version: "v1", text: function, patch: `status: {currentRevision: a}`, into: &pkgv1.Function{},
		},
		"Function v1beta1": {
			file: functionsFile, version: "v1beta1", text: function, patch: `apiVersion: pkg.crossplane.io/v1beta1`,
			into: &pkgv1beta1.Function{},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.file, tc.version)
			stored := merge(object(t, tc.text), object(t, tc.patch))
			if err := s.admit(stored, nil); err != nil {
				t.Fatal(err)
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, tc.into); err != nil {
				t.Fatal(err)
			}
			back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.into)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(withoutEmptyStatus(stored), withoutEmptyStatus(back)); diff != "" {
				t.Errorf("through the Go type (-stored +written):\n%s", diff)
			}
		})
	}
}

// withoutEmptyStatus drops fields that Go types always write and that an API server ignores.
func withoutEmptyStatus(obj map[string]any) map[string]any {
	for _, field := range []string{"status", "metadata"} {
		fields, _ := obj[field].(map[string]any)
		if len(fields) == 0 {
			delete(obj, field)
		}
	}
	return obj
}

func TestZeroCountsAreWritten(t *testing.T) {
	s := serve(t, "crosswatch.io_dependencywatchstatuses.yaml", "v1alpha1")
	zero := &watchv1alpha1.DependencyWatchStatus{}
	zero.APIVersion, zero.Kind = watchv1alpha1.GroupVersion.String(), watchv1alpha1.KindDependencyWatchStatus
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(zero)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.admit(obj, nil); err != nil {
		t.Fatal(err)
	}
	want := object(t, `
composites: {known: 0, tracked: 0}
references: {total: 0, composed: 0, required: 0, byName: 0, byLabels: 0}
watches: {wanted: 0, active: 0, failed: 0}
`)
	if diff := cmp.Diff(want, obj["status"]); diff != "" {
		t.Errorf("status of an object without XRs (-want +got):\n%s", diff)
	}
}

func TestEveryKindIsRegistered(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		extensionsv1.AddToScheme, extensionsv2.AddToScheme, extensionsv1beta1.AddToScheme,
		pkgv1.AddToScheme, pkgv1beta1.AddToScheme, watchv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]runtime.Object{
		"apiextensions.crossplane.io/v1, Kind=CompositeResourceDefinition": &extensionsv1.CompositeResourceDefinition{},
		"apiextensions.crossplane.io/v1, Kind=Composition":                 &extensionsv1.Composition{},
		"apiextensions.crossplane.io/v1, Kind=CompositionRevision":         &extensionsv1.CompositionRevision{},
		"apiextensions.crossplane.io/v2, Kind=CompositeResourceDefinition": &extensionsv2.CompositeResourceDefinition{},
		"apiextensions.crossplane.io/v1beta1, Kind=EnvironmentConfig":      &extensionsv1beta1.EnvironmentConfig{},
		"pkg.crossplane.io/v1, Kind=Function":                              &pkgv1.Function{},
		"pkg.crossplane.io/v1, Kind=FunctionRevision":                      &pkgv1.FunctionRevision{},
		"pkg.crossplane.io/v1beta1, Kind=Function":                         &pkgv1beta1.Function{},
		"pkg.crossplane.io/v1beta1, Kind=FunctionRevision":                 &pkgv1beta1.FunctionRevision{},
		"pkg.crossplane.io/v1beta1, Kind=DeploymentRuntimeConfig":          &pkgv1beta1.DeploymentRuntimeConfig{},
		"crosswatch.io/v1alpha1, Kind=DependencyWatchStatus":               &watchv1alpha1.DependencyWatchStatus{},
	}
	for want, obj := range tests {
		t.Run(want, func(t *testing.T) {
			kinds, _, err := scheme.ObjectKinds(obj)
			if err != nil {
				t.Fatal(err)
			}
			if len(kinds) != 1 || kinds[0].String() != want {
				t.Errorf("registered as %v", kinds)
			}
		})
	}
}
