// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
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
		if limitRequirements(asked) != nil {
			if err == nil || len(got) != 0 {
				t.Errorf("got %d requirements and error %v of more than anybody may ask for", len(got), err)
			}
			return
		}
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

// Whatever bytes a function answers with, they are taken or refused, with the same
// words each time and few enough for a condition.
func FuzzDecodeResponse(f *testing.F) {
	endless := strings.Repeat("x", 2*maxName)
	addEncoded(f,
		&fnv1.RunFunctionResponse{},
		&fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: "tag", Ttl: durationpb.New(time.Minute)}},
		&fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Ttl: &durationpb.Duration{Seconds: 1, Nanos: -1}}},
		&fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{endless: {}, "\x00": {}}}},
		&fnv1.RunFunctionResponse{Context: &structpb.Struct{Fields: map[string]*structpb.Value{endless: structpb.NewNumberValue(math.NaN())}}},
		&fnv1.RunFunctionResponse{Requirements: resources(map[string]*fnv1.ResourceSelector{
			endless: {ApiVersion: endless, Kind: endless}, "labels": byLabels(map[string]string{endless: endless}),
		})},
	)
	f.Fuzz(func(t *testing.T, encoded []byte) {
		resp := &fnv1.RunFunctionResponse{}
		if proto.Unmarshal(encoded, resp) != nil {
			t.Skip("not a message")
		}
		first, again := faultOf(resp), faultOf(resp)
		if (first == nil) != (again == nil) || first != nil && first.Error() != again.Error() {
			t.Errorf("the error changes from %v to %v", first, again)
		}
		if first != nil && len(first.Error()) > maxCause {
			t.Errorf("the error has %d bytes: %.200s", len(first.Error()), first)
		}
	})
}

// faultOf is what the runner says of a response's content: what is wrong with it
// or, as if that did not settle, what it asks for.
func faultOf(resp *fnv1.RunFunctionResponse) error {
	if err := validate(&fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Tag: "tag"}}, resp); err != nil {
		return err
	}
	asked, err := decodeRequirements("step", resp.GetRequirements())
	if err != nil {
		return err
	}
	return errors.New((&round{}).difference(asked))
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
