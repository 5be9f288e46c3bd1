// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
	clocktesting "k8s.io/utils/clock/testing"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

var kindWidget = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}

// widgets is the definition of Widget under a name.
func widgets(name string) *unstructured.Unstructured {
	return widgetsAs(name, "Something.")
}

func widgetsAs(name, description string) *unstructured.Unstructured {
	obj := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
	obj.SetUID("uid")
	obj.SetGeneration(1)
	plural := name[:len(name)-len(".example.org")]
	obj.Object["spec"] = map[string]any{
		"group": "example.org",
		"scope": "Namespaced",
		"names": map[string]any{"kind": "Widget", "listKind": "WidgetList", "plural": plural, "singular": "widget"},
		"versions": []any{
			map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type":        "object",
				"description": description,
				"properties": map[string]any{"spec": map[string]any{
					"type":       "object",
					"properties": map[string]any{"size": map[string]any{"type": "integer", "description": "How large it is."}},
				}},
			}}},
			map[string]any{"name": "v2", "served": false, "storage": false, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}},
		},
	}
	obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	return obj
}

// ask for the schema of a kind, by a run of a step.
func ask(t *testing.T, in *cluster, kind schema.GroupVersionKind) (*fnv1.Schema, dependency.Reference) {
	t.Helper()
	apiVersion, k := kind.ToAPIVersionAndKind()
	fn := &script{body: asks(&fnv1.Requirements{Schemas: map[string]*fnv1.SchemaSelector{"s": {ApiVersion: apiVersion, Kind: k}}})}
	got, err := newRunner(t, fn).Run(t.Context(), step(in))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Requirements) != 1 || got.Requirements[0].Subject != kind {
		t.Fatalf("got requirements %v, want one for %s", got.Requirements, kind)
	}
	return fn.requests[len(fn.requests)-1].GetRequiredSchemas()["s"], got.Requirements[0].Reference
}

// at returns the part of a schema under a path.
func at(t *testing.T, s *fnv1.Schema, path ...string) any {
	t.Helper()
	found, _, err := unstructured.NestedFieldNoCopy(s.GetOpenapiV3().AsMap(), path...)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSchemaOfADefinedKind(t *testing.T) {
	unserved := kindWidget
	unserved.Version = "v2"
	pending := widgets("widgets.example.org")
	delete(pending.Object, "status")
	tombstone := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Gadget"}

	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		kind    schema.GroupVersionKind
		known   bool
		at      string // name of the definition that is required; every one if empty
	}{
		"UsualPlural": {
			reason:  "Only the kind's own definition matters.",
			objects: []*unstructured.Unstructured{widgets("widgets.example.org"), widgets("other.example.org")},
			kind:    kindWidget, known: true, at: "widgets.example.org",
		},
		"OtherPlural": {
			reason:  "A definition is found by what it defines.",
			objects: []*unstructured.Unstructured{widgets("widgetry.example.org")},
			kind:    kindWidget, known: true, at: "widgetry.example.org",
		},
		"NotServed": {
			reason:  "The definition may serve the version one day.",
			objects: []*unstructured.Unstructured{widgets("widgets.example.org")},
			kind:    unserved, at: "widgets.example.org",
		},
		"NotEstablished": {
			reason:  "The API server doesn't serve the kind yet; its definition will change when it does.",
			objects: []*unstructured.Unstructured{pending},
			kind:    kindWidget, at: "widgets.example.org",
		},
		"Unknown": {
			reason:  "Any definition could be the one.",
			objects: []*unstructured.Unstructured{widgets("widgets.example.org")},
			kind:    tombstone,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := newCluster(tc.objects...)
			got, ref := ask(t, in, tc.kind)
			if diff := cmp.Diff(definitionNamed(tc.at), ref); diff != "" {
				t.Errorf("%s\nreference: -want +got:\n%s", tc.reason, diff)
			}
			if got == nil || (got.GetOpenapiV3() != nil) != tc.known {
				t.Fatalf("%s\ngot schema %v, want it known: %t", tc.reason, got, tc.known)
			}
			if !tc.known {
				return
			}
			if diff := cmp.Diff("How large it is.", at(t, got, "properties", "spec", "properties", "size", "description")); diff != "" {
				t.Errorf("description: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff("string", at(t, got, "properties", "metadata", "properties", "name", "type")); diff != "" {
				t.Errorf("type of metadata.name, which is a reference's: -want +got:\n%s", diff)
			}
		})
	}
}

func TestSchemaFollowsItsDefinition(t *testing.T) {
	schemas := newSchemas(t, openapitest.NewFakeClient())
	read := func(crd *unstructured.Unstructured) *fnv1.Schema {
		in := newCluster(crd)
		reader, err := in.Require(t.Context(), testXR, dependency.Requirement{Reference: definitionNamed(crd.GetName())})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := schemas.read(t.Context(), kindWidget, definition{at: definitionNamed(crd.GetName()), in: reader})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	crd := widgets("widgets.example.org")
	first := read(crd)
	if second := read(crd.DeepCopy()); second != first {
		t.Error("the schema was built again although the definition is the same")
	}
	changed := widgetsAs("widgets.example.org", "changed")
	changed.SetGeneration(2)
	if diff := cmp.Diff("changed", at(t, read(changed), "description")); diff != "" {
		t.Errorf("description: -want +got:\n%s", diff)
	}
}

func TestSchemaOfABuiltInKind(t *testing.T) {
	in := newCluster(widgets("widgets.example.org"))
	got, ref := ask(t, in, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if diff := cmp.Diff(definitionNamed("deployments.apps"), ref); diff != "" {
		t.Errorf("reference: -want +got:\n%s", diff)
	}
	containers := []string{"properties", "spec", "properties", "template", "properties", "spec", "properties", "containers", "items", "properties"}
	if diff := cmp.Diff("string", at(t, got, append(containers, "image", "type")...)); diff != "" {
		t.Errorf("type of a container's image: -want +got:\n%s", diff)
	}
	// A property keeps its own description beside what it refers to.
	if got := at(t, got, "properties", "metadata", "description"); got == nil {
		t.Error("metadata lost its description")
	}

	// The group has a dot, so that a definition would be possible, but none is there.
	_, ref = ask(t, in, schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"})
	if diff := cmp.Diff(definitionNamed("endpointslices.discovery.k8s.io"), ref); diff != "" {
		t.Errorf("reference: -want +got:\n%s", diff)
	}
}

func TestSchemaThatContainsItselfIsCut(t *testing.T) {
	const document = `{"components":{"schemas":{
		"a/b": {"type":"object","description":"a tree","x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Tree"}],
			"properties":{
				"$ref": {"type":"string"},
				"child": {"allOf":[{"$ref":"#/components/schemas/a~1b"}],"description":"a branch","default":{}},
				"leaves": {"type":"array","items":{"$ref":"#/components/schemas/leaf"}},
				"lost": {"$ref":"#/components/schemas/lost"}
			}},
		"leaf": {"properties":{"tree":{"$ref":"#/components/schemas/a~1b"}}}
	}}}`
	got, err := resolveKind([]byte(document), schema.GroupVersionKind{Version: "v1", Kind: "Tree"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "object", "description": "a tree",
		extensionKinds: []any{map[string]any{"group": "", "version": "v1", "kind": "Tree"}},
		"properties": map[string]any{
			"$ref":   map[string]any{"type": "string"},
			"child":  map[string]any{"type": "object", "description": "a branch", "default": map[string]any{}},
			"leaves": map[string]any{"type": "array", "items": map[string]any{"properties": map[string]any{"tree": map[string]any{"type": "object", "description": "a tree"}}}},
			"lost":   map[string]any{},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// countedAPI is an API server's OpenAPI of which each use is counted.
type countedAPI struct {
	core    countedDocument // at the path api/v1
	indexed int
	fetched int
}

type countedDocument struct {
	api           *countedAPI
	hash, content string
}

func (c *countedAPI) Paths() (map[string]openapi.GroupVersion, error) {
	c.indexed++
	document := c.core
	document.api = c
	return map[string]openapi.GroupVersion{"api/v1": document}, nil
}

func (d countedDocument) Schema(string) ([]byte, error) {
	d.api.fetched++
	return []byte(d.content), nil
}

func (d countedDocument) ServerRelativeURL() string { return "/openapi/v3/x?hash=" + d.hash }

func TestPublishedSchemasAreKeptByHash(t *testing.T) {
	document := func(hash, description, kind string) countedDocument {
		return countedDocument{hash: hash, content: fmt.Sprintf(
			`{"components":{"schemas":{"x":{"description":%q,"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":%q}]}}}}`,
			description, kind,
		)}
	}
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	started := time.Now()
	clock := clocktesting.NewFakePassiveClock(started)
	api := &countedAPI{core: document("1", "first", "Pod")}
	p := newPublished(api, clock)

	type counts struct{ Indexed, Fetched int }
	steps := []struct {
		name   string
		after  time.Duration
		change func()
		kind   schema.GroupVersionKind
		want   string // description; unknown if empty
		counts counts // in all
	}{
		{name: "first", kind: pod, want: "first", counts: counts{1, 1}},
		{name: "again", after: time.Minute, kind: pod, want: "first", counts: counts{1, 1}},
		{name: "index is old, hash is not", after: 11 * time.Minute, kind: pod, want: "first", counts: counts{2, 1}},
		{
			name: "other hash", after: 22 * time.Minute, kind: pod, want: "second", counts: counts{3, 2},
			change: func() { api.core = document("2", "second", "Pod") },
		},
		{name: "unknown kind", after: 22 * time.Minute, kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, counts: counts{3, 3}},
		{name: "unknown group", after: 22 * time.Minute, kind: schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "X"}, counts: counts{3, 3}},
		{
			name: "no longer unknown", after: 24 * time.Minute, kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, want: "third", counts: counts{4, 4},
			change: func() { api.core = document("3", "third", "Node") },
		},
	}
	for _, s := range steps {
		clock.SetTime(started.Add(s.after))
		if s.change != nil {
			s.change()
		}
		got, err := p.schema(t.Context(), s.kind)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if description := got.GetOpenapiV3().GetFields()["description"].GetStringValue(); description != s.want {
			t.Errorf("%s: got description %q, want %q", s.name, description, s.want)
		}
		if diff := cmp.Diff(s.counts, counts{api.indexed, api.fetched}); diff != "" {
			t.Errorf("%s: -want +got:\n%s", s.name, diff)
		}
	}
}
