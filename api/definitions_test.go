// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const definitionsFile = "apiextensions.crossplane.io_compositeresourcedefinitions.yaml"

// definition is one in either version; see inVersion.
const definition = `
kind: CompositeResourceDefinition
metadata: {name: buckets.example.org}
spec:
  group: example.org
  names: {kind: Bucket, plural: buckets}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

const conversion = `{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://example.org"}}}`

func TestDefinitionV1(t *testing.T) {
	serve(t, definitionsFile, "v1").creates(t, inVersion("v1", definition), map[string]change{
		"minimal":                      {},
		"no spec":                      {patch: `spec: null`},
		"no group":                     {patch: `spec: {group: null}`, wrong: "spec.group: Required value"},
		"no names":                     {patch: `spec: {names: null}`, wrong: "spec.names: Required value"},
		"no kind":                      {patch: `spec: {names: {kind: null}}`, wrong: "spec.names.kind: Required value"},
		"no versions":                  {patch: `spec: {versions: null}`, wrong: "spec.versions: Required value"},
		"plural in upper case":         {patch: `spec: {names: {plural: Buckets}}`, wrong: "plural must be lower case"},
		"singular in upper case":       {patch: `spec: {names: {singular: Bucket}}`, wrong: "singular must be lower case"},
		"namespaced":                   {patch: `spec: {scope: Namespaced}`},
		"cluster":                      {patch: `spec: {scope: Cluster}`},
		"unknown scope":                {patch: `spec: {scope: Galaxy}`, wrong: "Unsupported value"},
		"legacy with claims":           {patch: `spec: {claimNames: {kind: BucketClaim, plural: bucketclaims}}`},
		"namespaced with claims":       {patch: `spec: {scope: Namespaced, claimNames: {kind: C, plural: c}}`, wrong: "claimNames need scope LegacyCluster"},
		"claim plural in upper case":   {patch: `spec: {claimNames: {kind: C, plural: C}}`, wrong: "plural must be lower case"},
		"legacy with connection keys":  {patch: `spec: {connectionSecretKeys: [password]}`},
		"cluster with connection keys": {patch: `spec: {scope: Cluster, connectionSecretKeys: [p]}`, wrong: "connectionSecretKeys need scope LegacyCluster"},
		"update policy":                {patch: `spec: {defaultCompositionUpdatePolicy: Manual}`},
		"unknown update policy":        {patch: `spec: {defaultCompositionUpdatePolicy: Never}`, wrong: "Unsupported value"},
		"unknown delete policy":        {patch: `spec: {defaultCompositeDeletePolicy: Orphan}`, wrong: "Unsupported value"},
		"composition without a name":   {patch: `spec: {defaultCompositionRef: {}}`, wrong: "spec.defaultCompositionRef.name: Required value"},
		"conversion by webhook":        {patch: `spec: {conversion: ` + conversion + `}`},
		"conversion without webhook":   {patch: `spec: {conversion: {strategy: Webhook}}`, wrong: "conversion needs strategy Webhook"},
		"version that says too little": {patch: `spec: {versions: [{name: v1}]}`, wrong: "spec.versions[0].served: Required value"},
		"long deprecation warning": {
			patch: `spec: {versions: [{name: v1, served: true, referenceable: true, deprecationWarning: "` + strings.Repeat("x", 257) + `"}]}`,
			wrong: "spec.versions[0].deprecationWarning: Too long",
		},
		"scale without paths": {
			patch: `spec: {versions: [{name: v1, served: true, referenceable: true, subresources: {scale: {}}}]}`,
			wrong: "spec.versions[0].subresources.scale.specReplicasPath: Required value",
		},
		"printer column without a path": {
			patch: `spec: {versions: [{name: v1, served: true, referenceable: true, additionalPrinterColumns: [{name: A, type: string}]}]}`,
			wrong: "spec.versions[0].additionalPrinterColumns[0].jsonPath: Required value",
		},
		"condition twice": {
			patch: `status: {conditions: [` + condition + `,` + condition + `]}`,
			wrong: "status.conditions[1]: Duplicate value",
		},
	})
}

const condition = `{type: Established, status: "True", reason: R, lastTransitionTime: "2026-01-01T00:00:00Z"}`

func TestDefinitionV2(t *testing.T) {
	serve(t, definitionsFile, "v2").creates(t, inVersion("v2", definition), map[string]change{
		"minimal":              {},
		"namespaced":           {patch: `spec: {scope: Namespaced}`},
		"cluster":              {patch: `spec: {scope: Cluster}`},
		"legacy cluster":       {patch: `spec: {scope: LegacyCluster}`, wrong: "Unsupported value"},
		"claims":               {patch: `spec: {claimNames: {kind: C, plural: c}}`, wrong: "claimNames are only in v1"},
		"connection keys":      {patch: `spec: {connectionSecretKeys: [p]}`, wrong: "connectionSecretKeys are only in v1"},
		"plural in upper case": {patch: `spec: {names: {plural: Buckets}}`, wrong: "plural must be lower case"},
	})
}

func TestDefinitionUpdate(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			s := serve(t, definitionsFile, version)
			s.updates(t, inVersion(version, definition), map[string]change{
				"nothing":              {},
				"labels for the CRD":   {patch: `spec: {metadata: {labels: {a: b}}}`},
				"default composition":  {patch: `spec: {defaultCompositionRef: {name: a}}`},
				"group":                {patch: `spec: {group: example.com}`, wrong: "group is immutable"},
				"kind":                 {patch: `spec: {names: {kind: Pail}}`, wrong: "names are immutable"},
				"short names":          {patch: `spec: {names: {shortNames: [b]}}`, wrong: "names are immutable"},
				"scope":                {patch: `spec: {scope: Cluster}`, wrong: "scope is immutable"},
				"enforced composition": {patch: `spec: {enforcedCompositionRef: {name: a}}`},
			})
			s.updates(t, inVersion(version, definition)+"  enforcedCompositionRef: {name: a}\n", map[string]change{
				"another enforced composition": {patch: `spec: {enforcedCompositionRef: {name: b}}`, wrong: "enforcedCompositionRef is immutable"},
			})
		})
	}
	serve(t, definitionsFile, "v1").updates(t, inVersion("v1", definition)+"  claimNames: {kind: BucketClaim, plural: bucketclaims}\n", map[string]change{
		"claim kind": {patch: `spec: {claimNames: {kind: PailClaim}}`, wrong: "claimNames are immutable"},
	})
}

func TestDefinitionDefaults(t *testing.T) {
	tests := map[string]map[string]any{
		"v1": {"scope": "LegacyCluster", "defaultCompositionUpdatePolicy": "Automatic", "defaultCompositeDeletePolicy": "Background"},
		"v2": {"scope": "Namespaced", "defaultCompositionUpdatePolicy": "Automatic"},
	}
	for version, want := range tests {
		t.Run(version, func(t *testing.T) {
			obj, wanted := object(t, inVersion(version, definition)), object(t, inVersion(version, definition))
			if err := serve(t, definitionsFile, version).admit(obj, nil); err != nil {
				t.Fatal(err)
			}
			// That the two are equal but for the defaults also says that nothing of the XR's schema is pruned.
			merge(wanted, map[string]any{"spec": want})
			if diff := cmp.Diff(wanted, obj); diff != "" {
				t.Errorf("as it is stored (-want +got):\n%s", diff)
			}
		})
	}
}

// inVersion is a definition with its apiVersion.
func inVersion(version, definition string) string {
	return "apiVersion: apiextensions.crossplane.io/" + version + definition
}
