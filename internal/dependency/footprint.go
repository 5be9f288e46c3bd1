// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

// What the parts of a tracker take of the heap, in bytes, as measured on 64-bit
// machines: each with its share of the maps that hold it. They follow from the
// structs of this package and change with them. TestBytesFollowTheHeap holds
// them to what is measured.
const (
	recordBytes   = 290 // and the XR's name
	kindBytes     = 900
	namedBytes    = 380
	selectorBytes = 880
	holderBytes   = 26 // a record among the holders of an entry, or of a kind
	composedBytes = 8
	requiredBytes = 96 // and the names of step and requirement, which repeat
)

// bytesLocked estimates what the tracker takes of the heap.
func (t *Tracker) bytesLocked() int {
	return len(t.records)*recordBytes + len(t.index.kinds)*kindBytes + t.index.bytes
}

// bytes is what the entry takes, but for its holders.
func (e *entry) bytes() int {
	text := len(e.reference.Namespace) + len(e.reference.Name)
	if e.byName() {
		return namedBytes + text
	}
	for key, value := range e.reference.Labels {
		text += 2 * (len(key) + len(value)) // in the labels, and spelled out
	}
	return selectorBytes + text
}

// bytes is what a run takes to list an entry in the role.
func (r role) bytes() int {
	if r == required {
		return requiredBytes
	}
	return composedBytes
}
