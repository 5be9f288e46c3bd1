// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import "unsafe"

// bytesLocked says what the tracker takes of the heap: what its tables were given,
// the texts and lists that are counted one by one, and nearly what the sets take.
func (t *Tracker) bytesLocked() int {
	return t.records.table.bytes() + t.records.bytes + t.index.bytes()
}

func (x *index) bytes() int {
	return x.names.allBytes() + x.labels.allBytes() + x.kinds.bytes() + x.entries.bytes() + x.pairs.bytes()
}

func (t *texts) allBytes() int {
	return t.table.bytes() + t.uses.bytes() + t.bytes
}

func (k *kinds) bytes() int {
	dependants := 0
	for _, kind := range k.stats {
		dependants += kind.Dependants
	}
	return k.table.bytes() + cap(k.stats)*int(unsafe.Sizeof(KindStats{})) + setBytes(len(k.stats), dependants)
}

func (x *entries) bytes() int {
	return x.table.bytes() + x.sets.bytes() + setBytes(int(x.sets.len)-len(x.given), x.shared)
}

func (p *pairs) bytes() int {
	const underBytes = 14 // of a map of numbers
	return p.table.bytes() + setBytes(p.table.held, len(p.under)) + len(p.under)*underBytes
}

// setBytes is what sets take beyond themselves: a chunk each, if they are small,
// and room for more.
func setBytes(sets, numbers int) int {
	const chunkBytes, numberBytes = 28, 5
	return sets*chunkBytes + numbers*numberBytes
}

func (t *table[T]) bytes() int {
	return t.rows.bytes() + t.links.bytes() + t.buckets.bytes()
}

func (p *pages[T]) bytes() int {
	var page [pageLen]T
	return len(p.pages)*int(unsafe.Sizeof(page)) + cap(p.pages)*int(unsafe.Sizeof(&page))
}

func (r *record) bytes() int {
	bytes := 0
	for _, run := range r.runs() {
		bytes += run.bytes()
	}
	if r.unsettled != nil {
		bytes += allocated(int(unsafe.Sizeof(unsettled{})))
	}
	return bytes
}

func (r *run) bytes() int {
	return allocated(cap(r.composed)*int(unsafe.Sizeof(entryID(0)))) +
		allocated(cap(r.required)*int(unsafe.Sizeof(requirement{})))
}

// allocated is what a piece of so many bytes takes of the heap, where pieces come
// in steps.
func allocated(bytes int) int {
	step := 16
	if bytes <= 32 {
		step = 8
	}
	return (bytes + step - 1) / step * step
}
