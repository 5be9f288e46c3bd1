// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what the Applier remembers of its applies: 32 bytes each, by the XR
// on whose behalf they were sent. Losing it costs at most one apply an object.
type memory struct {
	mu   sync.Mutex
	byXR map[types.UID][]record
}

// A record says what one object was after the last apply to it.
type record struct {
	key     uint64 // which object, owner and subresource
	intent  uint64 // hash of what was applied
	owned   uint64 // hash of our entry's fields, and of the values there, in the result
	version uint64 // resource version of the result; 0 if it isn't a number
}

func (m *memory) get(xr types.UID, key uint64) (record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	records := m.byXR[xr]
	if i := find(records, key); i >= 0 {
		return records[i], true
	}
	return record{}, false
}

func (m *memory) put(xr types.UID, r record) {
	m.mu.Lock()
	defer m.mu.Unlock()

	records := m.byXR[xr]
	if i := find(records, r.key); i >= 0 {
		records[i] = r
		return
	}
	m.byXR[xr] = append(records, r)
}

func (m *memory) drop(xr types.UID, key uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()

	records := m.byXR[xr]
	if i := find(records, key); i >= 0 {
		m.byXR[xr] = slices.Delete(records, i, i+1)
	}
}

func (m *memory) forget(xr types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.byXR, xr)
}

// find scans: XRs that compose so much that this could be felt spend their time
// elsewhere.
func find(records []record, key uint64) int {
	return slices.IndexFunc(records, func(r record) bool { return r.key == key })
}

func versionOf(obj *unstructured.Unstructured) uint64 {
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}
