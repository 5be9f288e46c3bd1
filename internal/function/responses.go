// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"k8s.io/utils/clock"
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
	kept  *otter.Cache[responseKey, kept] // nil if none is kept
	clock clock.PassiveClock

	mu        sync.Mutex     // guards forgotten
	forgotten map[string]int // how often what a function answered was
}

// A responseKey is what one version of a function was shown. Equal ones have the
// same answer.
type responseKey struct {
	function   string
	version    string
	asReturned bool // how its TTL was read
	forgotten  int  // how often what the function answered had been by then
	tag        string
}

type kept struct {
	encoded       []byte
	made, expires time.Time
}

// isGood says whether an answer may be given again. One from a time to come was
// given before the clock was set back, and nobody knows how old it is.
func (k kept) isGood(now time.Time) bool { return !now.Before(k.made) && now.Before(k.expires) }

// keptBytes is what a response takes beyond its own bytes and those of what finds
// it.
const keptBytes = 256

// NewResponses returns Responses that are empty.
func NewResponses(config ResponsesConfig) (*Responses, error) {
	if config.Clock == nil {
		return nil, errors.New("cannot keep responses without a clock")
	}
	r := &Responses{clock: config.Clock, forgotten: map[string]int{}}
	if config.Bytes == 0 {
		return r, nil
	}
	var err error
	r.kept, err = otter.New(&otter.Options[responseKey, kept]{
		MaximumWeight: config.Bytes,
		Weigher: func(key responseKey, value kept) uint32 {
			bytes := keptBytes + len(key.function) + len(key.version) + len(key.tag) + len(value.encoded)
			return uint32(min(bytes, math.MaxUint32))
		},
		// Expiry by this frees memory. What is handed out is held to the clock.
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[responseKey, kept]) time.Duration {
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

// Forget what the function has answered so far, or is answering now.
func (r *Responses) Forget(function string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten[function]++ // what is kept under another number is never asked for, and goes as the least used
}

func (r *Responses) forgottenOf(function string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forgotten[function]
}

// take returns the answer to the request if there is one that is good now. It is
// the caller's.
func (r *Responses) take(key responseKey) (answered, bool) {
	if r.kept == nil {
		return answered{}, false
	}
	found, ok := r.kept.GetIfPresent(key)
	if !ok || !found.isGood(r.clock.Now()) {
		return answered{}, false
	}
	resp, err := NewResponse(found.encoded)
	if err != nil {
		return answered{}, false // it could be decoded when it was kept; the function is asked again
	}
	return answered{Response: resp, expires: found.expires}, true
}

// put keeps the answer to the request until it expires.
func (r *Responses) put(key responseKey, answer answered) {
	answered := kept{encoded: answer.encoded, made: r.clock.Now(), expires: answer.expires}
	if r.kept == nil || !answered.isGood(answered.made) {
		return
	}
	r.kept.Set(key, answered)
}
