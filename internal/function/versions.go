// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"sync"
	"time"
)

// versions remembers which version of each function was in force last. It is safe
// for concurrent use.
type versions struct {
	mu   sync.Mutex // guards last
	last map[string]version
}

type version struct {
	name     string
	endpoint string
	made     time.Time

	// settles is until when the version before may answer at the same endpoint.
	settles time.Time
}

// note which version is in force now, and return until when another may answer in
// its place; zero if none may.
func (v *versions) note(function string, now version, at time.Time) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	before, known := v.last[function]
	switch {
	case !known:
		now.settles = now.made.Add(takeoverTime) // it may have taken over while nobody looked
	case before.name == now.name:
		now.settles = before.settles
	case before.endpoint == now.endpoint:
		now.settles = at.Add(takeoverTime)
	}
	if !at.Before(now.settles) {
		now.settles = time.Time{}
	}
	if v.last == nil {
		v.last = map[string]version{}
	}
	v.last[function] = now
	return now.settles
}

func (v *versions) drop(function string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.last, function)
}
