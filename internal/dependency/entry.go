// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import "hash/maphash"

// An entryID stands for an entry. Zero is none.
type entryID uint32

// An entry is one distinct reference, shared by every record that holds it.
type entry struct {
	key     entryKey
	holders group // of records
}

// An entryKey is what an entry refers to.
type entryKey struct {
	kind      kindID
	namespace textID
	term      term
}

// A term is the text of a name, or that of a selector.
type term uint32

// bySelector marks the text as one of a selector.
const bySelector term = 1 << 31

func (t term) byName() bool                      { return t&bySelector == 0 }
func (t term) text() textID                      { return textID(t &^ bySelector) }
func (k entryKey) hash(seed maphash.Seed) uint64 { return maphash.Comparable(seed, k) }

// entries holds each reference once, with the records that hold it.
type entries struct {
	table   table[entry]
	seed    maphash.Seed
	holders groups[recordID]
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
	e := x.at(id)
	e.holders, _ = x.holders.add(e.holders, rec)
}

// release ends that the record is a holder, and reports whether another is.
func (x *entries) release(id entryID, rec recordID) bool {
	e := x.at(id)
	e.holders, _ = x.holders.remove(e.holders, rec)
	return e.holders != 0
}

// eachHolder calls visit in order with the holders that are not before start,
// until visit returns false.
func (x *entries) eachHolder(id entryID, start recordID, visit func(recordID) bool) {
	x.holders.each(x.at(id).holders, start, visit)
}
