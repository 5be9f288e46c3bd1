// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package respond builds a composition function's responses and reads its
// requests, for functions in tests. Values that can't be sent are a mistake of
// the test and panic.
package respond

import (
	"fmt"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// To starts a response: it has the request's tag and passes on what the steps
// before desire, and their context.
func To(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	rsp := &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag()},
		Desired: &fnv1.State{},
	}
	if req.GetDesired() != nil {
		rsp.Desired = proto.CloneOf(req.GetDesired())
	}
	if req.GetContext() != nil {
		rsp.Context = proto.CloneOf(req.GetContext())
	}
	return rsp
}

// TTL sets how long the response may be cached.
func TTL(rsp *fnv1.RunFunctionResponse, ttl time.Duration) {
	rsp.Meta.Ttl = durationpb.New(ttl)
}

// Desire adds a composed resource, or replaces the one of that name.
func Desire(rsp *fnv1.RunFunctionResponse, name string, object map[string]any, ready fnv1.Ready) {
	if rsp.Desired.Resources == nil {
		rsp.Desired.Resources = map[string]*fnv1.Resource{}
	}
	rsp.Desired.Resources[name] = &fnv1.Resource{Resource: Struct(object), Ready: ready}
}

// Status adds fields to the composite resource's status; a field that is there
// already is replaced whole.
func Status(rsp *fnv1.RunFunctionResponse, status map[string]any) {
	composite := composite(rsp)
	if composite.Resource == nil {
		composite.Resource = Struct(nil)
	}
	fields := composite.Resource.Fields
	if fields["status"].GetStructValue() == nil {
		fields["status"] = structpb.NewStructValue(Struct(nil))
	}
	maps.Copy(fields["status"].GetStructValue().Fields, Struct(status).Fields)
}

// Ready sets the composite resource's own readiness.
func Ready(rsp *fnv1.RunFunctionResponse, ready fnv1.Ready) {
	composite(rsp).Ready = ready
}

// Context sets one value of the context that later steps get.
func Context(rsp *fnv1.RunFunctionResponse, key string, value any) {
	if rsp.Context == nil {
		rsp.Context = Struct(nil)
	}
	maps.Copy(rsp.Context.Fields, Struct(map[string]any{key: value}).Fields)
}

// Struct converts a JSON-like map.
func Struct(object map[string]any) *structpb.Struct {
	converted, err := structpb.NewStruct(object)
	if err != nil {
		panic(fmt.Sprintf("a test's function answers with what is no JSON: %v", err))
	}
	return converted
}

func composite(rsp *fnv1.RunFunctionResponse) *fnv1.Resource {
	if rsp.Desired.Composite == nil {
		rsp.Desired.Composite = &fnv1.Resource{}
	}
	return rsp.Desired.Composite
}
