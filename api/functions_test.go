// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const function = `
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: template}
spec: {package: "registry.example.org/team/template:v1.0.0"}
`

func TestFunction(t *testing.T) {
	const malformed = "package must be an image with registry and tag or digest"
	for _, version := range []string{"v1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			serve(t, "pkg.crossplane.io_functions.yaml", version).creates(t, function, map[string]change{
				"minimal":             {},
				"no package":          {patch: `spec: {package: null}`, wrong: "spec.package: Required value"},
				"by digest":           {patch: `spec: {package: "registry.example.org/template@sha256:0a"}`},
				"by tag and digest":   {patch: `spec: {package: "registry.example.org/template:v1@sha256:0a"}`},
				"no registry":         {patch: `spec: {package: "team/template:v1"}`, wrong: malformed},
				"no tag":              {patch: `spec: {package: "registry.example.org/template"}`, wrong: malformed},
				"no image":            {patch: `spec: {package: "registry.example.org:v1"}`, wrong: malformed},
				"unnamed runtime":     {patch: `spec: {runtimeConfigRef: {kind: K}}`, wrong: "spec.runtimeConfigRef.name: Required value"},
				"history limit words": {patch: `spec: {revisionHistoryLimit: many}`, wrong: "must be of type integer"},
			})
		})
	}
}

func TestFunctionDefaults(t *testing.T) {
	got := object(t, function)
	if err := serve(t, "pkg.crossplane.io_functions.yaml", "v1").admit(got, nil); err != nil {
		t.Fatal(err)
	}
	want := merge(object(t, function), object(t, `
spec:
  ignoreCrossplaneConstraints: false
  packagePullPolicy: IfNotPresent
  revisionActivationPolicy: Automatic
  revisionHistoryLimit: 1
  runtimeConfigRef: {apiVersion: pkg.crossplane.io/v1beta1, kind: DeploymentRuntimeConfig, name: default}
  skipDependencyResolution: false
`))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as it is stored (-want +got):\n%s", diff)
	}
}

func TestFunctionRevision(t *testing.T) {
	const revision = `
apiVersion: pkg.crossplane.io/v1
kind: FunctionRevision
metadata: {name: template-0a}
spec: {desiredState: Active, image: "registry.example.org/template:v1", revision: 1}
status: {endpoint: "dns:///template.ns:9443", capabilities: [composition]}
`
	for _, version := range []string{"v1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			serve(t, "pkg.crossplane.io_functionrevisions.yaml", version).creates(t, revision, map[string]change{
				"minimal":               {},
				"no state":              {patch: `spec: {desiredState: null}`, wrong: "spec.desiredState: Required value"},
				"no image":              {patch: `spec: {image: null}`, wrong: "spec.image: Required value"},
				"no number":             {patch: `spec: {revision: null}`, wrong: "spec.revision: Required value"},
				"object without a name": {patch: `status: {objectRefs: [{apiVersion: v1, kind: K}]}`, wrong: "objectRefs[0].name: Required value"},
			})
		})
	}
}
