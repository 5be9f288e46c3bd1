// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

func addEncoded(f *testing.F, messages ...proto.Message) {
	f.Helper()
	for _, m := range messages {
		encoded, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
}

// Whatever a function asks for, what of it is taken up is complete, in order,
// and the same each time.
func FuzzDecodeRequirements(f *testing.F) {
	addEncoded(f,
		&fnv1.Requirements{},
		resources(map[string]*fnv1.ResourceSelector{"a": byName("ns", "a"), "b": byLabels(map[string]string{"x": "y"})}),
		resources(map[string]*fnv1.ResourceSelector{"": {}, "a": {ApiVersion: "a/b/c", Kind: "X"}, "b": byName("", "")}),
		&fnv1.Requirements{
			ExtraResources: map[string]*fnv1.ResourceSelector{"a": {ApiVersion: "apps/v1", Kind: "Deployment"}}, //nolint:staticcheck // Older functions know nothing else.
			Schemas:        map[string]*fnv1.SchemaSelector{"s": {ApiVersion: "example.org/v1", Kind: "Widget"}, "t": {}},
		},
	)
	f.Fuzz(func(t *testing.T, encoded []byte) {
		asked := &fnv1.Requirements{}
		if proto.Unmarshal(encoded, asked) != nil {
			t.Skip("not a message")
		}
		got, err := decodeRequirements("step", asked)
		all := len(asked.GetResources()) + len(asked.GetExtraResources()) + len(asked.GetSchemas()) //nolint:staticcheck // Older functions know nothing else.
		if (err == nil) != (len(got) == all) {
			t.Errorf("got %d of %d requirements, and error %v", len(got), all, err)
		}
		if !slices.IsSortedFunc(got, compareRequirements) {
			t.Errorf("not sorted: %v", got)
		}
		for _, r := range got {
			if r.Reference.GVK.Version == "" || r.Reference.GVK.Kind == "" {
				t.Errorf("%v has no kind", r)
			}
		}
		_, again := decodeRequirements("step", asked)
		if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Errorf("the error changes from %v to %v", err, again)
		}
		shown := &round{}
		for _, r := range got {
			shown.asked = append(shown.asked, item{requirement: r})
		}
		if !shown.settledBy(got) {
			t.Errorf("the answer asks for more than itself: %v", got)
		}
	})
}

// A response that is valid holds nothing that JSON can't say.
func FuzzValidate(f *testing.F) {
	desired := func(fields map[string]*structpb.Value) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{
			"x": {Resource: &structpb.Struct{Fields: fields}},
		}}}
	}
	addEncoded(f,
		&fnv1.RunFunctionResponse{},
		&fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: "other"}},
		desired(nil),
		desired(map[string]*structpb.Value{
			"apiVersion": structpb.NewStringValue("v1"),
			"kind":       structpb.NewStringValue("ConfigMap"),
			"data":       structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNumberValue(1), nil, {}}}),
		}),
	)
	f.Fuzz(func(t *testing.T, encoded []byte) {
		resp := &fnv1.RunFunctionResponse{}
		if proto.Unmarshal(encoded, resp) != nil {
			t.Skip("not a message")
		}
		if validate(&fnv1.RunFunctionRequest{}, resp) != nil {
			return
		}
		for name, r := range resp.GetDesired().GetResources() {
			if _, err := json.Marshal(r.GetResource().AsMap()); err != nil {
				t.Errorf("desired resource %q: %v", name, err)
			}
		}
	})
}
