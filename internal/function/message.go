// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// capabilities are those of the function contract; all are offered.
var capabilities = []fnv1.Capability{
	fnv1.Capability_CAPABILITY_CAPABILITIES,
	fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES,
	fnv1.Capability_CAPABILITY_CREDENTIALS,
	fnv1.Capability_CAPABILITY_CONDITIONS,
	fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS,
}

// A Request is what a function is called with, encoded once: its tag is a hash of
// the bytes that are sent, however often they are. It is immutable.
type Request struct {
	tag     string
	message *fnv1.RunFunctionRequest // nil where only the bytes are of use
	meta    []byte                   // field meta
	rest    []byte                   // all other fields; encoded fields can be in any order
}

// NewRequest tags and encodes a message whose meta is not set yet, and sets it.
// The message must not be changed any more. Equal messages have equal tags.
func NewRequest(message *fnv1.RunFunctionRequest) (*Request, error) {
	rest, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the request: %w", err)
	}
	sum := sha256.Sum256(rest)
	tag := hex.EncodeToString(sum[:])
	message.Meta = &fnv1.RequestMeta{Tag: tag, Capabilities: capabilities}
	meta, err := proto.Marshal(&fnv1.RunFunctionRequest{Meta: message.GetMeta()})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the request's meta: %w", err)
	}
	return &Request{tag: tag, message: message, meta: meta, rest: rest}, nil
}

// bytes returns the request without the message: who keeps it keeps no more than
// its bytes.
func (r *Request) bytes() *Request {
	return &Request{tag: r.tag, meta: r.meta, rest: r.rest}
}

// Decode returns a message of the caller's own, as the function sees it.
func (r *Request) Decode() (*fnv1.RunFunctionRequest, error) {
	message := &fnv1.RunFunctionRequest{}
	if err := proto.Unmarshal(slices.Concat(r.meta, r.rest), message); err != nil {
		return nil, fmt.Errorf("cannot decode the request: %w", err)
	}
	return message, nil
}

// Tag identifies all that the function is shown.
func (r *Request) Tag() string { return r.tag }

// Size of the request in bytes, as it is sent.
func (r *Request) Size() int { return len(r.meta) + len(r.rest) }

// A Response is what a function answered.
type Response struct {
	message *fnv1.RunFunctionResponse
	encoded []byte
}

// NewResponse decodes a response. The bytes must not be changed any more.
func NewResponse(encoded []byte) (*Response, error) {
	r := &Response{message: &fnv1.RunFunctionResponse{}, encoded: encoded}
	if err := proto.Unmarshal(encoded, r.message); err != nil {
		return nil, fmt.Errorf("cannot decode the response: %w", err)
	}
	return r, nil
}

// Message that the response says. It is the caller's of NewResponse.
func (r *Response) Message() *fnv1.RunFunctionResponse { return r.message }
