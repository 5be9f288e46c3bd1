// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"math"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// observedState returns the XR and what it composed as functions see them.
func (r *run) observedState() (*fnv1.State, error) {
	composite, err := function.AsStruct(r.in.XR.Unstructured)
	if err != nil {
		return nil, err
	}
	state := &fnv1.State{
		Composite: &fnv1.Resource{Resource: composite},
		Resources: map[string]*fnv1.Resource{},
	}
	for name, o := range r.shown() {
		object, err := function.AsStruct(o.object)
		if err != nil {
			return nil, err
		}
		state.Resources[name] = &fnv1.Resource{Resource: object, ConnectionDetails: o.connection}
	}
	return state, nil
}

func inputOf(step v1.PipelineStep) (*structpb.Struct, error) {
	if step.Input == nil || len(step.Input.Raw) == 0 {
		return nil, nil
	}
	input := &structpb.Struct{}
	if err := protojson.Unmarshal(step.Input.Raw, input); err != nil {
		return nil, err
	}
	return input, nil
}

// toMap returns a struct's content as API machinery has it, never nil.
func toMap(s *structpb.Struct) map[string]any {
	out := make(map[string]any, len(s.GetFields()))
	for name, value := range s.GetFields() {
		out[name] = toValue(value)
	}
	return out
}

func toValue(v *structpb.Value) any {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return kind.BoolValue
	case *structpb.Value_StringValue:
		return kind.StringValue
	case *structpb.Value_NumberValue:
		return toNumber(kind.NumberValue)
	case *structpb.Value_StructValue:
		return toMap(kind.StructValue)
	case *structpb.Value_ListValue:
		out := make([]any, 0, len(kind.ListValue.GetValues()))
		for _, item := range kind.ListValue.GetValues() {
			out = append(out, toValue(item))
		}
		return out
	}
	return nil
}

// toNumber returns an integer where a function can only have meant one: a Struct
// has floats only, and many fields refuse those.
func toNumber(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f)
	}
	return f
}
