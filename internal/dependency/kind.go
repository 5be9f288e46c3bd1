// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kindID stands for a kind. Zero is none.
type kindID uint32

type kind struct {
	gvk  schema.GroupVersionKind
	uses int // entries of the kind, and requirements of its schema

	entries   int
	selectors int // entries that are not by name
	at        int // where stats has the kind, if it has entries

	dependants set[recordID]
}

// kinds holds each kind that is mentioned, and counts the references to those
// that are referred to.
type kinds struct {
	table table[kind]
	seed  maphash.Seed
	stats []KindStats // one copy of one piece is all that Stats needs the lock for
}

func newKinds() kinds {
	seed := maphash.MakeSeed()
	return kinds{
		table: newTable(func(k *kind) uint64 { return maphash.Comparable(seed, k.gvk) }),
		seed:  seed,
	}
}

func (k *kinds) at(id kindID) *kind {
	return k.table.at(uint32(id))
}

// find returns the kind if anything mentions it, or zero.
func (k *kinds) find(gvk schema.GroupVersionKind) kindID {
	return kindID(k.table.find(maphash.Comparable(k.seed, gvk), func(held *kind) bool { return held.gvk == gvk }))
}

// live reports whether there are entries of the kind.
func (k *kinds) live(gvk schema.GroupVersionKind) bool {
	id := k.find(gvk)
	return id != 0 && k.at(id).entries > 0
}

// hold mentions the kind once more.
func (k *kinds) hold(gvk schema.GroupVersionKind) kindID {
	id := k.find(gvk)
	if id == 0 {
		id = kindID(k.table.add(kind{gvk: gvk}))
	}
	k.at(id).uses++
	return id
}

// release undoes one hold.
func (k *kinds) release(id kindID) {
	held := k.at(id)
	if held.uses--; held.uses == 0 {
		k.table.remove(uint32(id))
	}
}

// addEntry notes that an entry of the kind, which holds it, was made.
func (k *kinds) addEntry(id kindID, what what) {
	held := k.at(id)
	if held.entries == 0 {
		held.at = len(k.stats)
		k.stats = append(k.stats, KindStats{GVK: held.gvk})
	}
	held.entries++
	if !what.byName() {
		held.selectors++
	}
}

// removeEntry undoes addEntry.
func (k *kinds) removeEntry(id kindID, what what) {
	held := k.at(id)
	if !what.byName() {
		held.selectors--
	}
	if held.entries--; held.entries == 0 {
		k.dropStats(held.at)
	}
}

// dropStats takes a kind out of the counts. The last one fills its place.
func (k *kinds) dropStats(at int) {
	last := len(k.stats) - 1
	if at != last {
		k.stats[at] = k.stats[last]
		k.at(k.find(k.stats[at].GVK)).at = at
	}
	k.stats = slices.Delete(k.stats, last, last+1)
}

// count adds to the references that are counted for the kind.
func (k *kinds) count(id kindID, references int) {
	k.stats[k.at(id).at].References += references
}

// addDependant notes that the record refers to the kind, if that is new.
func (k *kinds) addDependant(id kindID, rec recordID) {
	if held := k.at(id); held.dependants.add(rec) {
		k.stats[held.at].Dependants++
	}
}

// removeDependant undoes addDependant.
func (k *kinds) removeDependant(id kindID, rec recordID) {
	if held := k.at(id); held.dependants.remove(rec) {
		k.stats[held.at].Dependants--
	}
}
