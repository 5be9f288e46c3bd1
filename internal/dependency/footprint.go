// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bytesLocked says what the tracker takes of the heap: what its tables were given,
// the texts and lists that are counted one by one, and nearly what the sets take.
func (t *Tracker) bytesLocked() int {
	return t.records.table.bytes() + t.records.bytes + t.index.bytes()
}

func (x *index) bytes() int {
	return x.names.allBytes() + x.labels.allBytes() + x.kinds.allBytes() + x.entries.bytes() + x.pairs.bytes()
}

func (t *texts) allBytes() int {
	return t.table.bytes() + t.uses.bytes() + t.bytes
}

func (k *kinds) allBytes() int {
	return k.table.bytes() + k.bytes + cap(k.stats)*int(unsafe.Sizeof(KindStats{})) + k.dependants.bytes()
}

func kindTextBytes(gvk schema.GroupVersionKind) int {
	return allocated(len(gvk.Group)) + allocated(len(gvk.Version)) + allocated(len(gvk.Kind))
}

func (x *entries) bytes() int {
	return x.table.bytes() + x.holders.bytes()
}

func (p *pairs) bytes() int {
	const underBytes = 14 // of a map of numbers
	return p.table.bytes() + p.filed.bytes() + len(p.under)*underBytes
}

// bytes of sets are those of a chunk each, if they are small, and of the numbers
// with room for more.
func (g *groups[N]) bytes() int {
	const chunkBytes, numberBytes = 28, 5
	return g.sets.bytes() + (int(g.sets.len)-len(g.spare))*chunkBytes + g.inSets*numberBytes
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
