// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// structOf reads YAML.
func structOf(t *testing.T, text string) *structpb.Struct {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := json.Unmarshal(encoded, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSecretsInObjectsAreRedacted(t *testing.T) {
	cases := map[string]struct{ object, want string }{
		"Secret": {
			object: `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: s}, data: {a: c2VjcmV0, b: c2VjcmV0}, stringData: {c: secret}}`,
			want:   `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: s}, data: {a: "[redacted]", b: "[redacted]"}, stringData: {c: "[redacted]"}}`,
		},
		"SecretThatKubectlApplied": {
			object: `{apiVersion: v1, kind: Secret, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: secret, other: x}}}`,
			want:   `{apiVersion: v1, kind: Secret, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: "[redacted]", other: "[redacted]"}}}`,
		},
		"SecretWithoutAVersion": {
			object: `{kind: Secret, data: {a: secret}}`,
			want:   `{kind: Secret, data: {a: "[redacted]"}}`,
		},
		"SecretWhoseDataIsNoData": {
			object: `{apiVersion: v1, kind: Secret, data: [secret], stringData: secret}`,
			want:   `{apiVersion: v1, kind: Secret, data: "[redacted]", stringData: "[redacted]"}`,
		},
		"SecretWhoseValuesAreObjects": {
			object: `{apiVersion: v1, kind: Secret, data: {a: {b: secret}, c: 42}}`,
			want:   `{apiVersion: v1, kind: Secret, data: {a: "[redacted]", c: "[redacted]"}}`,
		},
		"WrappedSecret": {
			object: `{apiVersion: example.org/v1, kind: Object, spec: {forProvider: {manifest: {apiVersion: v1, kind: Secret, data: {a: secret}}}}}`,
			want:   `{apiVersion: example.org/v1, kind: Object, spec: {forProvider: {manifest: {apiVersion: v1, kind: Secret, data: {a: "[redacted]"}}}}}`,
		},
		"WrappedSecretThatKubectlApplied": {
			object: `{apiVersion: example.org/v1, kind: Object, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: secret}}}`,
			want:   `{apiVersion: example.org/v1, kind: Object, metadata: {annotations: {}}}`,
		},
		"SecretInAList": {
			object: `{apiVersion: v1, kind: List, items: [[{apiVersion: v1, kind: Secret, data: {a: secret}}], {data: {a: seen}}]}`,
			want:   `{apiVersion: v1, kind: List, items: [[{apiVersion: v1, kind: Secret, data: {a: "[redacted]"}}], {data: {a: seen}}]}`,
		},
		"SecretList": {
			object: `{apiVersion: v1, kind: SecretList, metadata: {resourceVersion: "1"}, items: [{metadata: {name: s}, data: {a: secret}}]}`,
			want:   `{apiVersion: v1, kind: SecretList, metadata: {resourceVersion: "1"}, items: [{metadata: {name: s}, data: {a: "[redacted]"}}]}`,
		},
		"SecretWithinASecret": {
			object: `{apiVersion: v1, kind: Secret, metadata: {x: {apiVersion: v1, kind: Secret, data: {a: secret}}}}`,
			want:   `{apiVersion: v1, kind: Secret, metadata: {x: {apiVersion: v1, kind: Secret, data: {a: "[redacted]"}}}}`,
		},
		"ConfigMap": {
			object: `{apiVersion: v1, kind: ConfigMap, data: {a: seen}, immutable: true, n: 1.5, nothing: null}`,
			want:   `{apiVersion: v1, kind: ConfigMap, data: {a: seen}, immutable: true, n: 1.5, nothing: null}`,
		},
		"SecretOfAnotherGroup": {
			object: `{apiVersion: example.org/v1, kind: Secret, data: {a: seen}}`,
			want:   `{apiVersion: example.org/v1, kind: Secret, data: {a: seen}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			given := structOf(t, tc.object)
			before := proto.Clone(given)
			got := picture(given.ProtoReflect())
			if diff := cmp.Diff(any(structOf(t, tc.want).AsMap()), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !proto.Equal(before, given) {
				t.Errorf("the object was changed to %v", given)
			}
		})
	}
}

func TestMessagesAreShownWithTheContractsNames(t *testing.T) {
	secrets := map[string][]byte{"password": []byte("secret")}
	cases := map[string]struct {
		message proto.Message
		want    map[string]any
	}{
		"Credentials": {
			message: &fnv1.RunFunctionRequest{Credentials: map[string]*fnv1.Credentials{
				"cloud": {Source: &fnv1.Credentials_CredentialData{CredentialData: &fnv1.CredentialData{Data: secrets}}},
			}},
			want: map[string]any{"credentials": map[string]any{
				"cloud": map[string]any{"credential_data": map[string]any{"data": map[string]any{"password": Redacted}}},
			}},
		},
		"ConnectionDetailsOfTheXR": {
			message: &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{ConnectionDetails: secrets}}},
			want: map[string]any{"observed": map[string]any{"composite": map[string]any{
				"connection_details": map[string]any{"password": Redacted},
			}}},
		},
		"ConnectionDetailsOfWhatIsRequired": {
			message: &fnv1.RunFunctionRequest{RequiredResources: map[string]*fnv1.Resources{"db": {Items: []*fnv1.Resource{{ConnectionDetails: secrets}}}}},
			want: map[string]any{"required_resources": map[string]any{"db": map[string]any{"items": []any{
				map[string]any{"connection_details": map[string]any{"password": Redacted}},
			}}}},
		},
		"NothingThere": {
			message: &fnv1.RunFunctionRequest{RequiredResources: map[string]*fnv1.Resources{"none": {}}, RequiredSchemas: map[string]*fnv1.Schema{"none": nil}},
			want: map[string]any{
				"required_resources": map[string]any{"none": map[string]any{}},
				"required_schemas":   map[string]any{"none": map[string]any{}},
			},
		},
		"Response": {
			message: &fnv1.RunFunctionResponse{
				Meta:    &fnv1.ResponseMeta{Tag: "t", Ttl: durationpb.New(61_500_000_000)},
				Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{"a": {Ready: fnv1.Ready_READY_TRUE}, "b": {Ready: 77}}},
				Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "m", Reason: ptr.To("")}},
				Requirements: &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
					"r": {ApiVersion: "v1", Kind: "ConfigMap", Match: &fnv1.ResourceSelector_MatchName{MatchName: "n"}},
				}},
			},
			want: map[string]any{
				"meta": map[string]any{"tag": "t", "ttl": "61.5s"},
				"desired": map[string]any{"resources": map[string]any{
					"a": map[string]any{"ready": "READY_TRUE"}, "b": map[string]any{"ready": float64(77)},
				}},
				"results":      []any{map[string]any{"severity": "SEVERITY_WARNING", "message": "m", "reason": ""}},
				"requirements": map[string]any{"resources": map[string]any{"r": map[string]any{"api_version": "v1", "kind": "ConfigMap", "match_name": "n"}}},
			},
		},
		"WhatJSONCannotSay": {
			message: &structpb.Struct{Fields: map[string]*structpb.Value{
				"nan": structpb.NewNumberValue(math.NaN()), "inf": structpb.NewNumberValue(math.Inf(-1)), "nil": nil, "none": {},
				"text": structpb.NewStringValue("a\xffb"),
			}},
			want: map[string]any{"nan": "NaN", "inf": "-Inf", "nil": nil, "none": nil, "text": "a\ufffdb"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			encoded, err := json.Marshal(picture(tc.message.ProtoReflect()))
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(encoded, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
