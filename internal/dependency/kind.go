// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"hash/maphash"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kindID stands for a kind. Zero is none.
type kindID uint32

type kind struct {
	gvk  schema.GroupVersionKind
	uses int // entries of the kind, and requirements of its schema

	entries   int
	selectors int // entries that are not by name
	place     int // where stats has the kind, if it has entries

	dependants group // records
}

// kinds holds each kind that is mentioned, and counts the references to those
// that are referred to.
type kinds struct {
	table      table[kind]
	seed       maphash.Seed
	bytes      int         // that the names of kinds take
	stats      []KindStats // in one piece, which Stats copies at once
	dependants groups[recordID]
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

// selects reports whether there are entries of the kind that are not by name.
func (k *kinds) selects(gvk schema.GroupVersionKind) bool {
	id := k.find(gvk)
	return id != 0 && k.at(id).selectors > 0
}

// hold mentions the kind once more.
func (k *kinds) hold(gvk schema.GroupVersionKind) kindID {
	id := k.find(gvk)
	if id == 0 {
		// Copies of its own: the caller's may be parts of something large.
		own := schema.GroupVersionKind{
			Group: strings.Clone(gvk.Group), Version: strings.Clone(gvk.Version), Kind: strings.Clone(gvk.Kind),
		}
		id = kindID(k.table.add(kind{gvk: own}))
		k.bytes += kindTextBytes(gvk)
	}
	k.again(id)
	return id
}

// again mentions once more a kind that something mentions.
func (k *kinds) again(id kindID) {
	k.at(id).uses++
}

// release undoes one hold.
func (k *kinds) release(id kindID) {
	held := k.at(id)
	if held.uses == 0 {
		panic("dependency: a kind was released that nothing mentions")
	}
	if held.uses--; held.uses == 0 {
		k.bytes -= kindTextBytes(held.gvk)
		k.table.remove(uint32(id))
	}
}

// addEntry notes that an entry of the kind, which holds it, was made.
func (k *kinds) addEntry(id kindID, of term) {
	held := k.at(id)
	if held.entries == 0 {
		held.place = len(k.stats)
		k.stats = append(k.stats, KindStats{GVK: held.gvk})
	}
	held.entries++
	if !of.byName() {
		held.selectors++
	}
}

// removeEntry undoes addEntry.
func (k *kinds) removeEntry(id kindID, of term) {
	held := k.at(id)
	if !of.byName() {
		held.selectors--
	}
	if held.entries--; held.entries == 0 {
		k.dropStats(held.place)
	}
}

// dropStats takes a kind out of the counts. The last one fills its place.
func (k *kinds) dropStats(at int) {
	last := len(k.stats) - 1
	k.stats[at] = k.stats[last]
	k.at(k.find(k.stats[at].GVK)).place = at
	k.stats = slices.Delete(k.stats, last, last+1)
}

// count adds to the references that are counted for the kind.
func (k *kinds) count(id kindID, references int) {
	k.stats[k.at(id).place].References += references
}

// addDependant notes that the record refers to the kind, if that is new.
func (k *kinds) addDependant(id kindID, rec recordID) {
	held := k.at(id)
	var added bool
	if held.dependants, added = k.dependants.add(held.dependants, rec); added {
		k.stats[held.place].Dependants++
	}
}

// removeDependant undoes addDependant.
func (k *kinds) removeDependant(id kindID, rec recordID) {
	held := k.at(id)
	var removed bool
	if held.dependants, removed = k.dependants.remove(held.dependants, rec); removed {
		k.stats[held.place].Dependants--
	}
}

// eachDependant calls visit in order with the records that refer to the kind and
// are not before start, until visit returns false.
func (k *kinds) eachDependant(gvk schema.GroupVersionKind, start recordID, visit func(recordID) bool) {
	k.dependants.each(k.at(k.find(gvk)).dependants, start, visit)
}
