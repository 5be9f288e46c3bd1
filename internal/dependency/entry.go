// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import "hash/maphash"

// An entryID stands for an entry. Zero is none.
type entryID uint32

// An entry is one distinct reference, shared by every record that holds it.
type entry struct {
	key    entryKey
	holder holder
}

// An entryKey is what an entry refers to.
type entryKey struct {
	kind      kindID
	namespace textID
	what      what
}

// A what is the text of a name, or of a selector.
type what uint32

// bySelector marks the text as one of a selector.
const bySelector what = 1 << 31

func (w what) byName() bool                      { return w&bySelector == 0 }
func (w what) text() textID                      { return textID(w &^ bySelector) }
func (k entryKey) hash(seed maphash.Seed) uint64 { return maphash.Comparable(seed, k) }

// A holder is the only record that holds an entry, or says which set has those
// that do. An entry that was held by several at once remains so until nobody
// holds it.
type holder uint32

// several marks a holder as the number of a set.
const several holder = 1 << 31

func (h holder) several() bool    { return h&several != 0 }
func (h holder) set() uint32      { return uint32(h &^ several) }
func (h holder) record() recordID { return recordID(h) }

// entries holds each reference once, with the records that hold it.
type entries struct {
	table table[entry]
	seed  maphash.Seed

	sets   pages[set[recordID]]
	given  []uint32 // numbers of empty sets, to be used again
	shared int      // holders in all sets
}

func newEntries() entries {
	seed := maphash.MakeSeed()
	return entries{
		table: newTable(func(e *entry) uint64 { return e.key.hash(seed) }),
		seed:  seed,
	}
}

func (x *entries) at(id entryID) *entry {
	return x.table.at(uint32(id))
}

func (x *entries) find(key entryKey) entryID {
	return entryID(x.table.find(key.hash(x.seed), func(e *entry) bool { return e.key == key }))
}

func (x *entries) add(key entryKey) entryID {
	return entryID(x.table.add(entry{key: key}))
}

func (x *entries) remove(id entryID) {
	x.table.remove(uint32(id))
}

// hold makes the record a holder, if it isn't one.
func (x *entries) hold(id entryID, rec recordID) {
	switch e := x.at(id); {
	case e.holder.several():
		x.share(e.holder.set(), rec)
	case e.holder == 0:
		e.holder = holder(rec)
	case e.holder.record() != rec:
		n := x.newSet()
		x.share(n, e.holder.record())
		x.share(n, rec)
		e.holder = holder(n) | several
	}
}

// release ends that the record is a holder, and reports whether another is.
func (x *entries) release(id entryID, rec recordID) bool {
	e := x.at(id)
	if e.holder.several() {
		n := e.holder.set()
		if x.sets.at(n).remove(rec) {
			x.shared--
		}
		if !x.sets.at(n).empty() {
			return true
		}
		x.given = append(x.given, n)
	}
	e.holder = 0
	return false
}

// eachHolder calls visit in order with the holders that are not before start,
// until visit returns false.
func (x *entries) eachHolder(id entryID, start recordID, visit func(recordID) bool) {
	switch h := x.at(id).holder; {
	case h.several():
		x.sets.at(h.set()).each(start, visit)
	case h.record() >= start:
		visit(h.record())
	}
}

func (x *entries) share(set uint32, rec recordID) {
	if x.sets.at(set).add(rec) {
		x.shared++
	}
}

func (x *entries) newSet() uint32 {
	last := len(x.given) - 1
	if last < 0 {
		return x.sets.grow()
	}
	n := x.given[last]
	x.given = x.given[:last]
	return n
}
