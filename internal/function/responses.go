// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/maypok86/otter/v2"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// DefaultResponsesBytes is how much the responses that are kept may take.
const DefaultResponsesBytes = 256 << 20

// ResponsesConfig is what Responses need.
type ResponsesConfig struct {
	// Bytes that the encoded responses, and what finds them, may take. The least
	// used go first. Zero keeps none.
	Bytes uint64

	Clock clock.PassiveClock
}

// Responses keeps what functions answered, encoded, each until it expires. It is
// safe for concurrent use. Close it to end its goroutines.
type Responses struct {
	kept  *otter.Cache[request, kept] // nil if none is kept
	clock clock.PassiveClock
}

// A request is what one version of a function was shown. Equal ones have the same
// answer.
type request struct {
	function string
	version  string
	tag      string
}

type kept struct {
	encoded []byte
	expires time.Time
}

// keptBytes is what a response takes beyond its own bytes and those of what finds
// it.
const keptBytes = 256

// NewResponses returns Responses that are empty.
func NewResponses(config ResponsesConfig) (*Responses, error) {
	if config.Clock == nil {
		return nil, errors.New("cannot keep responses without a clock")
	}
	r := &Responses{clock: config.Clock}
	if config.Bytes == 0 {
		return r, nil
	}
	var err error
	r.kept, err = otter.New(&otter.Options[request, kept]{
		MaximumWeight: config.Bytes,
		Weigher: func(key request, value kept) uint32 {
			bytes := keptBytes + len(key.function) + len(key.version) + len(key.tag) + len(value.encoded)
			return uint32(min(bytes, math.MaxUint32))
		},
		// Expiry by this frees memory. What is handed out is held to the clock.
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[request, kept]) time.Duration {
			return e.Value.expires.Sub(config.Clock.Now())
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot keep responses: %w", err)
	}
	return r, nil
}

// Close ends the goroutines.
func (r *Responses) Close() {
	if r.kept != nil {
		r.kept.StopAllGoroutines()
	}
}

// take returns the answer to the request and when it expires, or nil if there is
// none that is good now. The answer is the caller's.
func (r *Responses) take(key request) (*fnv1.RunFunctionResponse, time.Time) {
	if r.kept == nil {
		return nil, time.Time{}
	}
	found, ok := r.kept.GetIfPresent(key)
	if !ok || !r.clock.Now().Before(found.expires) {
		return nil, time.Time{}
	}
	resp := &fnv1.RunFunctionResponse{}
	if err := proto.Unmarshal(found.encoded, resp); err != nil {
		return nil, time.Time{} // not what put encoded; the function is asked again
	}
	return resp, found.expires
}

// put keeps the answer to the request until it expires.
func (r *Responses) put(key request, resp *fnv1.RunFunctionResponse, expires time.Time) {
	if r.kept == nil || !r.clock.Now().Before(expires) {
		return
	}
	encoded, err := proto.Marshal(resp)
	if err != nil {
		return // a response that came over the wire always can be encoded
	}
	r.kept.Set(key, kept{encoded: encoded, expires: expires})
}
