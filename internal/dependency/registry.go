// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import "sync"

// A Registry keeps one Tracker for each XR controller, by the controller's name.
// A tracker outlives the controller's restarts, so that nothing is forgotten by
// them. Make one with NewRegistry. All methods are safe for concurrent use.
type Registry struct {
	mu       sync.Mutex
	trackers map[string]*Tracker
}

// NewRegistry returns a registry without trackers.
func NewRegistry() *Registry {
	return &Registry{trackers: map[string]*Tracker{}}
}

// Tracker returns the controller's tracker, which it makes if there is none.
func (r *Registry) Tracker(name string) *Tracker {
	r.mu.Lock()
	defer r.mu.Unlock()

	t, ok := r.trackers[name]
	if !ok {
		t = NewTracker()
		r.trackers[name] = t
	}
	return t
}

// Set puts a tracker in the place of the controller's own. Whoever holds that
// one already keeps it: set trackers before their controllers start.
func (r *Registry) Set(name string, t *Tracker) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.trackers[name] = t
}

// Delete drops the controller's tracker, if there is one. A controller that
// starts under the same name later begins with an empty one.
func (r *Registry) Delete(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	delete(r.trackers, name)
}
