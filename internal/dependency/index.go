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
	counts counts
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
		k = newKind()
		x.kinds[ref.GVK] = k
	}
	e := k.entry(ref)
	held := e.holders[rec]
	if held == (uses{}) {
		k.holders[rec]++
	}
	if held[as] == 0 {
		x.counts.add(e, as, 1)
		k.references++
	}
	held[as]++
	e.holders[rec] = held
	return e
}

// release undoes one hold. What nobody holds any more is removed.
func (x *index) release(rec *record, e *entry, as role) {
	k := x.kinds[e.reference.GVK]
	held := e.holders[rec]
	held[as]--
	if held[as] == 0 {
		x.counts.add(e, as, -1)
		k.references--
	}
	if held != (uses{}) {
		e.holders[rec] = held
		return
	}

	delete(e.holders, rec)
	if k.holders[rec]--; k.holders[rec] == 0 {
		delete(k.holders, rec)
	}
	if len(e.holders) == 0 {
		k.remove(e)
	}
	if len(k.holders) == 0 {
		delete(x.kinds, e.reference.GVK)
	}
}
