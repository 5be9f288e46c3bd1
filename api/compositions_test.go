// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	compositionsFile = "apiextensions.crossplane.io_compositions.yaml"
	revisionsFile    = "apiextensions.crossplane.io_compositionrevisions.yaml"
)

const composition = `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: buckets}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Bucket}
  pipeline:
  - step: render
    functionRef: {name: template}
    input:
      apiVersion: template.example.org/v1
      kind: Template
      text: {any: [shape, 1, true]}
    credentials:
    - {name: cloud, source: Secret, secretRef: {namespace: default, name: cloud}}
    requirements:
      requiredResources:
      - {requirementName: all, apiVersion: v1, kind: ConfigMap}
      - {requirementName: named, apiVersion: v1, kind: ConfigMap, namespace: default, name: a}
      - {requirementName: labelled, apiVersion: v1, kind: ConfigMap, matchLabels: {a: b}}
      requiredSchemas:
      - {requirementName: all, apiVersion: v1, kind: ConfigMap}
`

func TestComposition(t *testing.T) {
	serve(t, compositionsFile, "v1").creates(t, composition, map[string]change{
		"complete":             {},
		"no spec":              {patch: `spec: null`},
		"no composite type":    {patch: `spec: {compositeTypeRef: null}`, wrong: "spec.compositeTypeRef: Required value"},
		"no kind":              {patch: `spec: {compositeTypeRef: {kind: null}}`, wrong: "spec.compositeTypeRef.kind: Required value"},
		"mode":                 {patch: `spec: {mode: Pipeline}`},
		"another mode":         {patch: `spec: {mode: Resources}`, wrong: "Unsupported value"},
		"no pipeline":          {patch: `spec: {pipeline: null}`, wrong: "a Composition needs a pipeline"},
		"empty pipeline":       {patch: `spec: {pipeline: []}`, wrong: "should have at least 1 items"},
		"longest pipeline":     {patch: pipeline(99)},
		"too long a pipeline":  {patch: pipeline(100), wrong: "Too many"},
		"two steps":            {patch: `spec: {pipeline: [{step: a, functionRef: {name: f}}, {step: b, functionRef: {name: f}}]}`},
		"two steps, same name": {patch: `spec: {pipeline: [{step: a, functionRef: {name: f}}, {step: a, functionRef: {name: g}}]}`, wrong: "Duplicate value"},
		"no step name":         {patch: `spec: {pipeline: [{functionRef: {name: f}}]}`, wrong: "spec.pipeline[0].step: Required value"},
		"no function":          {patch: `spec: {pipeline: [{step: a}]}`, wrong: "spec.pipeline[0].functionRef: Required value"},
		"input of no kind":     {patch: step(`input: {apiVersion: v1}`), wrong: "spec.pipeline[0].input.kind: Required value"},
		"no credentials":       {patch: step(`credentials: [{name: a, source: None}]`), wrong: "source Secret needs a secretRef"},
		"no secret":            {patch: step(`credentials: [{name: a, source: Secret}]`), wrong: "source Secret needs a secretRef"},
		"unknown source":       {patch: step(`credentials: [{name: a, source: File}]`), wrong: "Unsupported value"},
		"secret of no namespace": {
			patch: step(`credentials: [{name: a, source: Secret, secretRef: {name: s}}]`),
			wrong: "secretRef.namespace: Required value",
		},
		"requirement of no kind": {
			patch: step(`requirements: {requiredResources: [{requirementName: a, apiVersion: v1}]}`),
			wrong: "requiredResources[0].kind: Required value",
		},
		"requirement by name and labels": {
			patch: step(`requirements: {requiredResources: [{requirementName: a, apiVersion: v1, kind: K, name: n, matchLabels: {a: b}}]}`),
			wrong: "name and matchLabels exclude each other",
		},
		"requirements of the same name": {
			patch: step(`requirements: {requiredSchemas: [{requirementName: a, apiVersion: v1, kind: K}, {requirementName: a, apiVersion: v1, kind: L}]}`),
			wrong: "requiredSchemas[1]: Duplicate value",
		},
	})
}

func TestCompositionUpdate(t *testing.T) {
	serve(t, compositionsFile, "v1").updates(t, composition, map[string]change{
		"another pipeline":       {patch: `spec: {pipeline: [{step: a, functionRef: {name: f}}]}`},
		"another composite type": {patch: `spec: {compositeTypeRef: {kind: Pail}}`, wrong: "compositeTypeRef is immutable"},
	})
}

func TestCompositionIsStoredWhole(t *testing.T) {
	got := object(t, composition)
	if err := serve(t, compositionsFile, "v1").admit(got, nil); err != nil {
		t.Fatal(err)
	}
	want := merge(object(t, composition), map[string]any{"spec": map[string]any{"mode": "Pipeline"}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as it is stored (-want +got):\n%s", diff)
	}
}

func TestCompositionRevision(t *testing.T) {
	serve(t, revisionsFile, "v1").creates(t, composition+"  revision: 1\n", map[string]change{
		"complete":        {},
		"no number":       {patch: `spec: {revision: null}`, wrong: "spec.revision: Required value"},
		"no pipeline":     {patch: `spec: {pipeline: null}`},
		"another mode":    {patch: `spec: {mode: Resources}`, wrong: "Unsupported value"},
		"condition twice": {patch: `status: {conditions: [` + condition + `,` + condition + `]}`, wrong: "Duplicate value"},
	})
}

// step is a patch that makes a pipeline of one step with those fields.
func step(fields string) string {
	return `spec: {pipeline: [{step: a, functionRef: {name: f}, ` + fields + `}]}`
}

// pipeline is a patch that makes a pipeline of n steps.
func pipeline(n int) string {
	steps := make([]string, n)
	for i := range steps {
		steps[i] = `{step: s` + strconv.Itoa(i) + `, functionRef: {name: f}}`
	}
	return `spec: {pipeline: [` + strings.Join(steps, ", ") + `]}`
}
