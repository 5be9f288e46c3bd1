// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// Whatever is asked and answered, it is shown as one line, which is an object.
func FuzzARoundIsOneLineOfJSON(f *testing.F) {
	odd := &structpb.Struct{Fields: map[string]*structpb.Value{
		"apiVersion": structpb.NewStringValue("v1"), "kind": structpb.NewStringValue("Secret"),
		"data": structpb.NewNumberValue(math.NaN()), "text": structpb.NewStringValue("a\nb\u2028<"), "none": {},
	}}
	state := &fnv1.State{Composite: &fnv1.Resource{Resource: odd, ConnectionDetails: map[string][]byte{"": nil}}}
	for _, seed := range []struct {
		req  *fnv1.RunFunctionRequest
		resp *fnv1.RunFunctionResponse
	}{
		{},
		{req: &fnv1.RunFunctionRequest{Observed: state, Input: odd}, resp: &fnv1.RunFunctionResponse{Desired: state}},
		{resp: &fnv1.RunFunctionResponse{
			Meta:       &fnv1.ResponseMeta{Ttl: &durationpb.Duration{Seconds: math.MaxInt64, Nanos: -1}},
			Conditions: []*fnv1.Condition{{Status: 99}},
		}},
	} {
		req, err := proto.Marshal(seed.req)
		if err != nil {
			f.Fatal(err)
		}
		resp, err := proto.Marshal(seed.resp)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(req, resp, "step")
	}
	f.Fuzz(func(t *testing.T, encodedReq, encodedResp []byte, step string) {
		req, resp := &fnv1.RunFunctionRequest{}, &fnv1.RunFunctionResponse{}
		if proto.Unmarshal(encodedReq, req) != nil || proto.Unmarshal(encodedResp, resp) != nil {
			t.Skip("not messages")
		}
		r := newRound(function.Inspection{Step: step, Request: encode(t, req), Response: encodedResp})
		var out bytes.Buffer
		if err := (taken{round: &r}).write(&out); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 || out.Bytes()[out.Len()-1] != '\n' {
			t.Errorf("want one line, got %d: %q", n, out.String())
		}
		var object map[string]any
		if err := json.Unmarshal(out.Bytes(), &object); err != nil {
			t.Errorf("no JSON: %v: %q", err, out.String())
		}
	})
}
