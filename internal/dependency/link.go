// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import "slices"

// A role is the side on which an XR holds a reference.
type role uint8

const (
	composed role = iota
	required
	roles
)

// A use is an entry in a role. However often a record lists it, it is linked to
// the record once.
type use uint32

func useOf(e entryID, as role) use { return use(e)<<1 | use(as) }
func (u use) entry() entryID       { return entryID(u >> 1) }
func (u use) role() role           { return role(u & 1) }

// link leads from a use that the record did not have to the record.
func (x *index) link(rec recordID, u use) {
	x.count(u, 1)
	kind := x.entries.at(u.entry()).key.kind
	x.kinds.addDependant(kind, rec)
	x.entries.hold(u.entry(), rec)
}

func (x *index) count(u use, n int) {
	key := x.entries.at(u.entry()).key
	x.counts.add(key, u.role(), n)
	x.kinds.count(key.kind, n)
}

// relink leads to the record from the uses that it has after a change, and no
// longer from those that it only had before. What it has before and after is
// linked at every moment. Both are sorted, each use once.
func (x *index) relink(rec recordID, before, after []use) {
	for _, u := range after {
		if !has(before, u) {
			x.link(rec, u)
		}
	}
	for _, u := range before {
		if !has(after, u) {
			x.count(u, -1)
		}
	}
	x.unlink(rec, before, after)
}

// unlink ends that the record is a holder of the entries, and a dependant of the
// kinds, that it only had before. What nobody holds any more is removed.
func (x *index) unlink(rec recordID, before, after []use) {
	kinds := x.kindsOf(after)
	last := entryID(0)
	for _, u := range before {
		e := u.entry()
		if e == last || has(after, useOf(e, composed)) || has(after, useOf(e, required)) {
			continue
		}
		last = e
		if kind := x.entries.at(e).key.kind; !has(kinds, kind) {
			x.kinds.removeDependant(kind, rec)
		}
		if !x.entries.release(e, rec) {
			x.remove(e)
		}
	}
}

// kindsOf returns the kinds of the uses, sorted. The next call changes them.
func (x *index) kindsOf(uses []use) []kindID {
	kinds := x.scratch[:0]
	for _, u := range uses {
		kinds = append(kinds, x.entries.at(u.entry()).key.kind)
	}
	slices.Sort(kinds)
	x.scratch = kinds
	return kinds
}

func has[T ~uint32](sorted []T, one T) bool {
	_, ok := slices.BinarySearch(sorted, one)
	return ok
}
