// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// What a round, and a value in it, take beyond their text.
const (
	roundBytes = 512
	valueBytes = 8
)

// A scale adds up what values take, and looks at no more of them once that is
// over its limit. It is about what the values take on the wire, for a fraction
// of what it costs to know that exactly.
type scale struct {
	bytes, limit int
}

// sizeOf estimates what a round takes. Any size over the limit may be less than
// it really is.
func sizeOf(i function.Inspection, limit int) int {
	s := &scale{bytes: roundBytes, limit: limit}
	s.request(i.Request)
	s.response(i.Response)
	return s.bytes
}

func (s *scale) request(req *fnv1.RunFunctionRequest) {
	s.state(req.GetObserved())
	s.state(req.GetDesired())
	s.object(req.GetInput())
	s.object(req.GetContext())
	s.required(req.GetExtraResources()) //nolint:staticcheck // Older functions ask for nothing else.
	s.required(req.GetRequiredResources())
	for name, schema := range req.GetRequiredSchemas() {
		s.text(name)
		s.object(schema.GetOpenapiV3())
	}
	for name, credentials := range req.GetCredentials() {
		s.text(name)
		s.secrets(credentials.GetCredentialData().GetData())
	}
}

func (s *scale) response(resp *fnv1.RunFunctionResponse) {
	s.state(resp.GetDesired())
	s.object(resp.GetContext())
	s.object(resp.GetOutput())
	s.text(resp.GetMeta().GetTag())
	s.bytes += proto.Size(resp.GetRequirements())
	for _, result := range resp.GetResults() {
		s.bytes += proto.Size(result)
	}
	for _, condition := range resp.GetConditions() {
		s.bytes += proto.Size(condition)
	}
}

func (s *scale) state(state *fnv1.State) {
	s.resource(state.GetComposite())
	for name, resource := range state.GetResources() {
		s.text(name)
		s.resource(resource)
	}
}

func (s *scale) required(all map[string]*fnv1.Resources) {
	for name, resources := range all {
		s.text(name)
		for _, resource := range resources.GetItems() {
			s.resource(resource)
		}
	}
}

func (s *scale) resource(resource *fnv1.Resource) {
	s.object(resource.GetResource())
	s.secrets(resource.GetConnectionDetails())
}

func (s *scale) secrets(data map[string][]byte) {
	for key, value := range data {
		s.text(key)
		s.bytes += len(value)
	}
}

func (s *scale) object(object *structpb.Struct) {
	for key, value := range object.GetFields() {
		if s.bytes > s.limit {
			return
		}
		s.text(key)
		s.value(value)
	}
}

func (s *scale) value(value *structpb.Value) {
	s.bytes += valueBytes
	switch kind := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		s.text(kind.StringValue)
	case *structpb.Value_StructValue:
		s.object(kind.StructValue)
	case *structpb.Value_ListValue:
		for _, element := range kind.ListValue.GetValues() {
			if s.bytes > s.limit {
				return
			}
			s.value(element)
		}
	}
}

func (s *scale) text(text string) { s.bytes += valueBytes + len(text) }
