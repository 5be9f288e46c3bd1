// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An index is the reverse side of the records: from a kind, and from what an
// object is called and labelled, to the records that refer to it. The lock of
// the Tracker guards it.
type index struct {
	kinds  map[schema.GroupVersionKind]*kind
	stats  []KindStats // of each kind, at kind.at: one copy of one piece is all that Stats needs the lock for
	counts counts
	bytes  int // what entries, holders and the runs that list them take
}

func newIndex() index {
	return index{kinds: map[schema.GroupVersionKind]*kind{}}
}

// A role is the side on which an XR holds a reference.
type role uint8

const (
	composed role = iota
	required
	roles
)

// uses says how often a record holds an entry in each role. A record holds an
// entry as often as its runs and requirements name the reference, and lets go of
// it only with the last of them.
type uses [roles]int32

// An entry is one distinct reference, shared by all records that hold it.
type entry struct {
	reference Reference
	filed     scopedPair // where kind.pairs holds it, if it has labels
	holders   map[*record]uses
}

func (e *entry) byName() bool {
	return e.reference.Name != ""
}

// hold makes the record hold the reference once more, and returns its entry.
func (x *index) hold(rec *record, ref Reference, as role) *entry {
	k, ok := x.kinds[ref.GVK]
	if !ok {
		k = x.add(ref.GVK)
	}
	e := k.entry(ref)
	if len(e.holders) == 0 {
		x.bytes += e.bytes()
	}
	held := e.holders[rec]
	if held == (uses{}) {
		x.bytes += holderBytes
		if k.holders[rec]++; k.holders[rec] == 1 {
			x.bytes += holderBytes
			x.stats[k.at].Dependants++
		}
	}
	if held[as] == 0 {
		x.counts.add(e, as, 1)
		x.stats[k.at].References++
	}
	x.bytes += as.bytes()
	held[as]++
	e.holders[rec] = held
	return e
}

// release undoes one hold. What nobody holds any more is removed.
func (x *index) release(rec *record, e *entry, as role) {
	k := x.kinds[e.reference.GVK]
	held := e.holders[rec]
	x.bytes -= as.bytes()
	held[as]--
	if held[as] == 0 {
		x.counts.add(e, as, -1)
		x.stats[k.at].References--
	}
	if held != (uses{}) {
		e.holders[rec] = held
		return
	}

	delete(e.holders, rec)
	x.bytes -= holderBytes
	if k.holders[rec]--; k.holders[rec] == 0 {
		delete(k.holders, rec)
		x.bytes -= holderBytes
		x.stats[k.at].Dependants--
	}
	if len(e.holders) == 0 {
		k.remove(e)
		x.bytes -= e.bytes()
	}
	if len(k.holders) == 0 {
		x.remove(e.reference.GVK)
	}
}

func (x *index) add(gvk schema.GroupVersionKind) *kind {
	k := newKind(len(x.stats))
	x.kinds[gvk] = k
	x.stats = append(x.stats, KindStats{GVK: gvk})
	return k
}

// remove takes a kind out that nobody holds. The last of stats fills its place.
func (x *index) remove(gvk schema.GroupVersionKind) {
	at, last := x.kinds[gvk].at, len(x.stats)-1
	x.stats[at] = x.stats[last]
	x.kinds[x.stats[at].GVK].at = at
	x.stats[last] = KindStats{}
	x.stats = x.stats[:last]
	delete(x.kinds, gvk)
}
