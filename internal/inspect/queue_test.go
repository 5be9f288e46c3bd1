// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// takeAll empties the queue.
func takeAll(q *queue) []shown {
	var all []shown
	for {
		t, ok := q.take()
		if !ok {
			return all
		}
		if t.dropped > 0 {
			all = append(all, shown{Dropped: int(t.dropped)})
		}
		if t.round != nil {
			all = append(all, shown{Round: t.round.Round, TooLarge: t.round.tooLarge})
		}
	}
}

func TestAFullQueueDropsTheOldest(t *testing.T) {
	const quarter = maxBytes/4 - 1000
	cases := map[string]struct {
		sizes []int // of the rounds, which are numbered from zero
		want  []shown
	}{
		"NotFull":   {sizes: []int{1, 1}, want: []shown{{Round: 0}, {Round: 1}}},
		"Bytes":     {sizes: []int{1, quarter, quarter, quarter, quarter, 2000}, want: []shown{{Dropped: 2}, {Round: 2}, {Round: 3}, {Round: 4}, {Round: 5}}},
		"TooLarge":  {sizes: []int{1, maxBytes, 1}, want: []shown{{Round: 0}, {Round: 1, TooLarge: true}, {Round: 2}}},
		"NothingIn": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := newQueue()
			for n, bytes := range tc.sizes {
				q.put(roundOf(n, bytes))
			}
			if diff := cmp.Diff(tc.want, takeAll(q)); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
			if q.bytes != 0 {
				t.Errorf("the empty queue believes to hold %d bytes", q.bytes)
			}
		})
	}
	t.Run("Rounds", func(t *testing.T) {
		q := newQueue()
		for n := range maxRounds + 7 {
			q.put(roundOf(n, 1))
		}
		got := takeAll(q)
		if diff := cmp.Diff([]shown{{Dropped: 7}, {Round: 7}}, got[:2]); diff != "" || len(got) != 1+maxRounds {
			t.Errorf("%d are taken, first (-want +got):\n%s", len(got), diff)
		}
	})
}

func TestARoundThatIsTooLargeKeepsItsXR(t *testing.T) {
	r := newRound(roundOf(1, maxBytes))
	if got := lineOf(&r); got.XR.Kind != "Greeting" || got.XR.APIVersion != "example.org/v1" || got.Request != nil {
		t.Errorf("want the XR's kind without the request, got %+v", got)
	}
}

// The bound on what the queue holds is worth something only if no part of a
// message escapes it.
func TestSizeOfCountsAllThatCanBeLarge(t *testing.T) {
	const large = 1 << 20
	text := string(make([]byte, large))
	object := &structpb.Struct{Fields: map[string]*structpb.Value{
		"a": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(text)}}),
	}}
	resource := &fnv1.Resource{Resource: object}
	state := &fnv1.State{Resources: map[string]*fnv1.Resource{"a": resource}}
	resources := map[string]*fnv1.Resources{"a": {Items: []*fnv1.Resource{resource}}}
	secrets := map[string][]byte{"a": make([]byte, large)}
	selectors := map[string]*fnv1.ResourceSelector{
		"a": {Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"a": text}}}},
	}
	for name, m := range map[string]proto.Message{
		"Observed":          &fnv1.RunFunctionRequest{Observed: state},
		"Desired":           &fnv1.RunFunctionRequest{Desired: state},
		"Composite":         &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: resource}},
		"Input":             &fnv1.RunFunctionRequest{Input: object},
		"Context":           &fnv1.RunFunctionRequest{Context: object},
		"RequiredResources": &fnv1.RunFunctionRequest{RequiredResources: resources},
		"ExtraResources":    &fnv1.RunFunctionRequest{ExtraResources: resources}, //nolint:staticcheck // Older functions read nothing else.
		"RequiredSchemas":   &fnv1.RunFunctionRequest{RequiredSchemas: map[string]*fnv1.Schema{"a": {OpenapiV3: object}}},
		"Connection":        &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{ConnectionDetails: secrets}}},
		"Credentials": &fnv1.RunFunctionRequest{Credentials: map[string]*fnv1.Credentials{
			"a": {Source: &fnv1.Credentials_CredentialData{CredentialData: &fnv1.CredentialData{Data: secrets}}},
		}},
		"ResponseDesired": &fnv1.RunFunctionResponse{Desired: state},
		"ResponseContext": &fnv1.RunFunctionResponse{Context: object},
		"Output":          &fnv1.RunFunctionResponse{Output: object},
		"Results":         &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Message: text}}},
		"Conditions":      &fnv1.RunFunctionResponse{Conditions: []*fnv1.Condition{{Message: &text}}},
		"Selectors":       &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{Resources: selectors}},
		"ExtraSelectors":  &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{ExtraResources: selectors}}, //nolint:staticcheck // Older functions ask for nothing else.
		"Tag":             &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: text}},
		"Schemas": &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{
			Schemas: map[string]*fnv1.SchemaSelector{"a": {Kind: text}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			i := roundOf(1, 0)
			i.Request = nil
			switch m := m.(type) {
			case *fnv1.RunFunctionRequest:
				i.Request = m
			case *fnv1.RunFunctionResponse:
				i.Response = m
			}
			if got := sizeOf(i, maxBytes); got < large || got > 2*large {
				t.Errorf("want about %d bytes, got %d", large, got)
			}
		})
	}
}
