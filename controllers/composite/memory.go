// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/composer"
)

// memory is what is remembered of each XR between its runs. Losing it costs
// nothing but events.
type memory struct {
	mu   sync.Mutex
	byXR map[types.NamespacedName]remembered
}

type remembered struct {
	uid types.UID
	// results of the last run; nil before the first.
	results map[uint64]struct{}
	// alarmed is whether it was told that the XR is not synced, and not yet that
	// it is again.
	alarmed bool
	// revision that the last run chose; empty before the first.
	revision string
	// untoldSince is since when runs end in a way of which nobody is told; zero if
	// the last did not.
	untoldSince time.Time
}

// claim makes the memory of that name that of the XR with that UID. If it was
// that of another, claim forgets it and returns the other's UID.
func (m *memory) claim(key types.NamespacedName, uid types.UID) (earlier types.UID, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	have, ok := m.byXR[key]
	if ok && have.uid == uid {
		return "", false
	}
	m.byXR[key] = remembered{uid: uid}
	return have.uid, ok
}

func (m *memory) forget(key types.NamespacedName) (types.UID, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	have, ok := m.byXR[key]
	delete(m.byXR, key)
	return have.uid, ok
}

// swap remembers a run's results and returns those of the run before, nil if
// there was none.
func (m *memory) swap(key types.NamespacedName, results []composer.Result) map[uint64]struct{} {
	now := make(map[uint64]struct{}, len(results))
	for _, result := range results {
		now[hashOf(result)] = struct{}{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	have := m.byXR[key]
	before := have.results
	have.results = now
	m.byXR[key] = have
	return before
}

// untold remembers whether a run ends in a way of which nobody is told, and returns
// since when runs do.
func (m *memory) untold(key types.NamespacedName, untold bool, now time.Time) (since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()

	have := m.byXR[key]
	switch {
	case !untold:
		have.untoldSince = time.Time{}
	case have.untoldSince.IsZero():
		have.untoldSince = now
	}
	m.byXR[key] = have
	return have.untoldSince
}

// takeUp remembers the revision that a run chose, and returns whether it is another
// than that of the run before.
func (m *memory) takeUp(key types.NamespacedName, revision string) (another bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	have := m.byXR[key]
	another, have.revision = have.revision != revision, revision
	m.byXR[key] = have
	return another
}

// alarm remembers whether it was told that the XR is not synced, and returns
// whether it had been.
func (m *memory) alarm(key types.NamespacedName, alarmed bool) (before bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	have := m.byXR[key]
	before, have.alarmed = have.alarmed, alarmed
	m.byXR[key] = have
	return before
}

func hashOf(r composer.Result) uint64 {
	h := fnv.New64a()
	for _, part := range []string{string('0' + rune(r.Severity)), r.Reason, r.Step, r.Message} {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}
