// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

func TestToPassesOnWithoutSharing(t *testing.T) {
	req := &fnv1.RunFunctionRequest{
		Meta:    &fnv1.RequestMeta{Tag: "tag"},
		Context: Struct(map[string]any{"region": "north"}),
		Desired: &fnv1.State{Composite: &fnv1.Resource{Resource: Struct(map[string]any{
			"status": map[string]any{"first": 1},
		})}},
	}
	rsp := To(req)
	Status(rsp, map[string]any{"second": 2})
	Context(rsp, "zone", "b")
	Desire(rsp, "config", map[string]any{"kind": "ConfigMap"}, fnv1.Ready_READY_TRUE)

	want := &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Tag: "tag"},
		Context: Struct(map[string]any{"region": "north", "zone": "b"}),
		Desired: &fnv1.State{
			Composite: &fnv1.Resource{Resource: Struct(map[string]any{
				"status": map[string]any{"first": 1, "second": 2},
			})},
			Resources: map[string]*fnv1.Resource{
				"config": {Resource: Struct(map[string]any{"kind": "ConfigMap"}), Ready: fnv1.Ready_READY_TRUE},
			},
		},
	}
	if diff := cmp.Diff(want, rsp, protocmp.Transform()); diff != "" {
		t.Errorf("response: -want, +got:\n%s", diff)
	}
	status := Struct(map[string]any{"status": map[string]any{"first": 1}})
	if diff := cmp.Diff(status, req.GetDesired().GetComposite().GetResource(), protocmp.Transform()); diff != "" {
		t.Errorf("the request changed: -want, +got:\n%s", diff)
	}
}

func TestRequire(t *testing.T) {
	namespace := "team-a"
	cases := map[string]struct {
		reason   string
		selector Selector
		want     *fnv1.ResourceSelector
	}{
		"Name": {
			reason:   "a name is matched in the namespace given",
			selector: Selector{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "settings"},
			want: &fnv1.ResourceSelector{
				ApiVersion: "v1", Kind: "ConfigMap", Namespace: &namespace,
				Match: &fnv1.ResourceSelector_MatchName{MatchName: "settings"},
			},
		},
		"Labels": {
			reason:   "no namespace is unset, not empty",
			selector: Selector{APIVersion: "v1", Kind: "ConfigMap", Labels: map[string]string{"tier": "gold"}},
			want: &fnv1.ResourceSelector{
				ApiVersion: "v1", Kind: "ConfigMap",
				Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{
					Labels: map[string]string{"tier": "gold"},
				}},
			},
		},
		"Everything": {
			reason:   "neither name nor labels is no match at all",
			selector: Selector{APIVersion: "v1", Kind: "ConfigMap"},
			want:     &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := To(&fnv1.RunFunctionRequest{})
			Require(rsp, "new", tc.selector)
			RequireExtra(rsp, "old", tc.selector)
			RequireSchema(rsp, "schema", "v1", "ConfigMap")
			want := &fnv1.Requirements{
				Resources:      map[string]*fnv1.ResourceSelector{"new": tc.want},
				ExtraResources: map[string]*fnv1.ResourceSelector{"old": tc.want}, //nolint:staticcheck // Deprecated, and in use.
				Schemas:        map[string]*fnv1.SchemaSelector{"schema": {ApiVersion: "v1", Kind: "ConfigMap"}},
			}
			if diff := cmp.Diff(want, rsp.GetRequirements(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\nrequirements: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadsWhatARequestCarries(t *testing.T) {
	object := map[string]any{"kind": "ConfigMap"}
	req := &fnv1.RunFunctionRequest{
		RequiredResources: map[string]*fnv1.Resources{
			"found": {Items: []*fnv1.Resource{{Resource: Struct(object)}}},
			"none":  {},
		},
		RequiredSchemas: map[string]*fnv1.Schema{"unknown": {}},
	}
	type answer struct {
		Objects []map[string]any
		Asked   bool
	}
	for name, want := range map[string]answer{
		"found":     {Objects: []map[string]any{object}, Asked: true},
		"none":      {Asked: true},
		"not asked": {},
	} {
		found, asked := Required(req, name)
		if diff := cmp.Diff(want, answer{Objects: found, Asked: asked}); diff != "" {
			t.Errorf("Required(%q): -want, +got:\n%s", name, diff)
		}
	}
	if schema, asked := RequiredSchema(req, "unknown"); schema != nil || !asked {
		t.Errorf("RequiredSchema(unknown): want nil and asked, got %v and %t", schema, asked)
	}
}
