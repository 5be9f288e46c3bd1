// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"sync"
	"time"
)

// An answered request: a valid response and until when it is good, zero if it
// must not be reused.
type answered struct {
	*Response

	expires time.Time
	kept    bool // the function was not called for this
}

// flights lets those who ask the same at the same time share one call. It is safe
// for concurrent use.
type flights struct {
	mu     sync.Mutex // guards flying; not held while calling or waiting
	flying map[responseKey]*flight
}

type flight struct {
	landed chan struct{} // closed once what follows is set

	answer    answered
	err       error
	abandoned bool // whoever called was told to stop
}

// share calls, or waits for the same call of somebody else. What somebody else is
// answered is shared only if it may be reused, and it is decoded anew: the answer
// is the caller's.
func (f *flights) share(ctx context.Context, key responseKey, call func() (answered, error)) (answered, error) {
	for {
		theirs := f.join(key)
		if theirs == nil {
			return f.fly(ctx, key, call)
		}
		select {
		case <-theirs.landed:
		case <-ctx.Done():
			return answered{}, ctx.Err()
		}
		switch {
		case theirs.abandoned:
			continue
		case theirs.err != nil:
			return answered{}, theirs.err
		case theirs.answer.expires.IsZero():
			return call()
		}
		resp, err := NewResponse(theirs.answer.encoded)
		return answered{Response: resp, expires: theirs.answer.expires}, err
	}
}

// join returns the flight that is under way, or nil after starting one, which the
// caller must fly.
func (f *flights) join(key responseKey) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if theirs, ok := f.flying[key]; ok {
		return theirs
	}
	if f.flying == nil {
		f.flying = map[responseKey]*flight{}
	}
	f.flying[key] = &flight{landed: make(chan struct{})}
	return nil
}

func (f *flights) fly(ctx context.Context, key responseKey, call func() (answered, error)) (answered, error) {
	var answer answered
	var err error
	// A panic of the call is the caller's matter, but nobody may wait for ever.
	abandoned := true
	defer func() {
		f.mu.Lock()
		mine := f.flying[key]
		delete(f.flying, key)
		f.mu.Unlock()
		mine.answer, mine.err, mine.abandoned = answer, err, abandoned
		close(mine.landed)
	}()
	answer, err = call()
	abandoned = err != nil && ctx.Err() != nil
	return answer, err
}
