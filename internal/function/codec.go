// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"

	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// A codec sends a *Request as it was encoded, and makes of what it receives a
// *Response that holds the encoded bytes as well. On the wire the messages are
// like any other protobuf messages.
type codec struct{}

// Marshal the *Request, without a copy.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	req, ok := v.(*Request)
	if !ok {
		return nil, fmt.Errorf("cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(req.meta), mem.SliceBuffer(req.rest)}, nil
}

// Unmarshal into a *Response.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	out, ok := v.(*Response)
	if !ok {
		return fmt.Errorf("cannot receive a %T", v)
	}
	resp, err := NewResponse(data.Materialize())
	if err != nil {
		return err
	}
	*out = *resp
	return nil
}

// Name is that of protobuf's codec, which the other end uses.
func (codec) Name() string { return proto.Name }
