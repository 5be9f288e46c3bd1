// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// D1: a pipeline of 5 to 10 MiB works if both ends allow it. If one doesn't, the
// error names the step, the size, the limit, and what takes most of it.
func TestD1LargeRequestsAndResponses(t *testing.T) {
	const many, each = 250, 32 << 10
	names := map[string]*structpb.Value{"x": structpb.NewStringValue(strings.Repeat("x", each))}
	in := newCluster()
	for i := range many {
		obj := configMap("ns", string(rune('a'+i%26))+strings.Repeat("b", i/26+1), map[string]string{"big": "yes"})
		obj.Object["data"] = map[string]any{"x": strings.Repeat("x", each)}
		in.add(obj)
	}
	want := resources(map[string]*fnv1.ResourceSelector{"big": byLabels(map[string]string{"big": "yes"})})

	cases := map[string]struct {
		server []grpc.ServerOption
		limit  int
		answer body
		want   string // empty if it works
	}{
		"BothAllowIt": {
			answer: func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				found := &fnv1.Resource{Resource: &structpb.Struct{Fields: names}}
				resp := &fnv1.RunFunctionResponse{Requirements: want, Context: &structpb.Struct{Fields: map[string]*structpb.Value{}}}
				for i := range req.GetRequiredResources()["big"].GetItems() {
					resp.Context.Fields[string(rune('a'+i%26))+strings.Repeat("b", i/26)] = structpb.NewStructValue(found.GetResource())
				}
				return resp, nil
			},
		},
		"AServerOfTheSDKs": {
			server: []grpc.ServerOption{grpc.MaxRecvMsgSize(sdkMessageLimit)},
			answer: asks(want),
			want: `step "step": function "f" at passthrough:///ADDRESS: resource exhausted: it accepts requests of at most 4 MiB; ` +
				`servers built with the function SDKs do unless their author raised that; ` +
				`the request has more than 4 MiB, most of it requirement "big" in resources: let it be less`,
		},
		"RequestOverOurLimit": {
			limit:  6 << 20,
			answer: asks(want),
			want: `step "step": function "f" at passthrough:///ADDRESS: resource exhausted: the request is larger than the limit of 6 MiB; ` +
				`the request has more than 4 MiB, most of it requirement "big" in resources: let it be less`,
		},
		"ResponseOverOurLimit": {
			limit: 2 << 20,
			answer: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return &fnv1.RunFunctionResponse{Context: &structpb.Struct{Fields: map[string]*structpb.Value{
					"x": structpb.NewStringValue(strings.Repeat("x", 3<<20)),
				}}}, nil
			},
			want: `step "step": function "f" at passthrough:///ADDRESS: resource exhausted: the response is larger than the limit of 2 MiB`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, serverConfig{options: tc.server}, tc.answer)
			i := newInstalled()
			i.development("f", "passthrough:///"+s.address)
			runner := newRunner(t, connect(t, i, func(c *ConnectionsConfig) { c.MessageLimit = tc.limit }))
			in.tracker.Forget(testXR)
			_, err := runner.Run(t.Context(), step(in))
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), s.address, "ADDRESS")
			}
			if got != tc.want {
				t.Errorf("got error %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestLargestPart(t *testing.T) {
	big := func(n int) *structpb.Struct {
		return &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewStringValue(strings.Repeat("x", n))}}
	}
	found := func(n int) *fnv1.Resources {
		return &fnv1.Resources{Items: []*fnv1.Resource{{Resource: big(n)}}}
	}
	cases := map[string]struct {
		req  *fnv1.RunFunctionRequest
		want string
	}{
		"Observed": {req: &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: big(9)}}}, want: "the observed state"},
		"Desired":  {req: &fnv1.RunFunctionRequest{Desired: &fnv1.State{Composite: &fnv1.Resource{Resource: big(9)}}}, want: "the desired state of the steps before"},
		"Context":  {req: &fnv1.RunFunctionRequest{Context: big(9), Input: big(8)}, want: "the context of the steps before"},
		"Input":    {req: &fnv1.RunFunctionRequest{Input: big(9)}, want: "the step's input"},
		"Extra": {req: &fnv1.RunFunctionRequest{
			RequiredResources: map[string]*fnv1.Resources{"a": found(9)},
			ExtraResources:    map[string]*fnv1.Resources{"b": found(100)}, //nolint:staticcheck // Older functions read nothing else.
		}, want: `requirement "b" in extra_resources`},
		"Schema": {req: &fnv1.RunFunctionRequest{RequiredSchemas: map[string]*fnv1.Schema{"s": {OpenapiV3: big(9)}}}, want: `requirement "s" in schemas`},
		"FirstOfNearlyEquals": {req: &fnv1.RunFunctionRequest{RequiredResources: map[string]*fnv1.Resources{
			"c": found(1000), "a": found(900), "b": found(100),
		}}, want: `requirement "a" in resources`},
		"FirstOfEquals": {req: &fnv1.RunFunctionRequest{RequiredResources: map[string]*fnv1.Resources{
			"c": found(9), "a": found(9), "b": found(9),
		}}, want: `requirement "a" in resources`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := largest(tc.req); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
