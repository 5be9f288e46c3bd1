// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

// An index is the reverse side of the records: from a kind, and from what an
// object is called and labelled, to the records that refer to it. The lock of
// the Tracker guards it.
type index struct {
	names   texts // of objects and namespaces, and of steps and requirements
	labels  texts // keys, values and selectors: few, and looked for with each event
	kinds   kinds
	entries entries
	pairs   pairs
	counts  counts
	scratch []kindID // of kindsOf
}

func newIndex() index {
	return index{
		names:   newTexts(),
		labels:  newTexts(),
		kinds:   newKinds(),
		entries: newEntries(),
		pairs:   newPairs(),
	}
}

// intern returns the entry of the reference, which it makes if there is none. A
// new one has no holder: the caller gives it one before the lock is released.
func (x *index) intern(ref *Reference) entryID {
	key := x.holdKey(ref)
	if id := x.entries.find(key); id != 0 {
		x.releaseKey(key) // which the entry holds already
		return id
	}
	id := x.entries.add(key)
	x.kinds.addEntry(key.kind, key.term)
	if !key.term.byName() {
		x.file(id, key)
	}
	return id
}

// remove takes out an entry that nobody holds, and everything that only it used.
func (x *index) remove(id entryID) {
	key := x.entries.at(id).key
	if !key.term.byName() {
		x.unfile(id)
	}
	x.kinds.removeEntry(key.kind, key.term)
	x.entries.remove(id)
	x.releaseKey(key)
}

// holdKey holds what an entry of the reference is made of.
func (x *index) holdKey(ref *Reference) entryKey {
	key := entryKey{kind: x.kinds.hold(ref.GVK), namespace: x.names.hold(ref.Namespace)}
	if ref.Name != "" {
		key.term = term(x.names.hold(ref.Name))
	} else {
		key.term = term(x.labels.hold(string(selectorOf(ref.Labels)))) | bySelector
	}
	return key
}

func (x *index) releaseKey(key entryKey) {
	x.kinds.release(key.kind)
	x.names.release(key.namespace)
	if key.term.byName() {
		x.names.release(key.term.text())
	} else {
		x.labels.release(key.term.text())
	}
}

// find returns the entry of the reference, or zero.
func (x *index) find(ref *Reference) entryID {
	kind := x.kinds.find(ref.GVK)
	if kind == 0 {
		return 0
	}
	namespace, ok := x.names.find(ref.Namespace)
	if !ok {
		return 0
	}
	if ref.Name != "" {
		name, ok := x.names.find(ref.Name)
		if !ok {
			return 0
		}
		return x.entries.find(entryKey{kind, namespace, term(name)})
	}
	s, ok := x.labels.find(string(selectorOf(ref.Labels)))
	if !ok {
		return 0
	}
	return x.entries.find(entryKey{kind, namespace, term(s) | bySelector})
}

// file puts an entry by labels under its most selective pair: the one under which
// the fewest others are, the first by key among equals. A pair that many selectors
// share would lead many objects to all of them.
func (x *index) file(id entryID, key entryKey) {
	var best struct{ key, value string }
	fewest := -1
	for k, v := range x.selector(key).pairs {
		if n := x.filedUnder(key.kind, key.namespace, k, v); fewest < 0 || n < fewest {
			best.key, best.value, fewest = k, v, n
		}
	}
	if fewest < 0 {
		return // what asks for no label is found without
	}
	pair := pairKey{key.kind, key.namespace, x.labels.hold(best.key), x.labels.hold(best.value)}
	if !x.pairs.file(id, pair) {
		x.releasePair(pair)
	}
}

func (x *index) filedUnder(kind kindID, namespace textID, key, value string) int {
	if id := x.pair(kind, namespace, key, value); id != 0 {
		return x.pairs.count(id)
	}
	return 0
}

// unfile undoes file.
func (x *index) unfile(id entryID) {
	if pair, gone := x.pairs.unfile(id); gone {
		x.releasePair(pair)
	}
}

func (x *index) releasePair(p pairKey) {
	x.labels.release(p.key)
	x.labels.release(p.value)
}

// pair returns the pair if selectors are filed under it, or zero.
func (x *index) pair(kind kindID, namespace textID, key, value string) pairID {
	k, ok := x.labels.find(key)
	if !ok {
		return 0
	}
	v, ok := x.labels.find(value)
	if !ok {
		return 0
	}
	return x.pairs.find(pairKey{kind, namespace, k, v})
}

func (x *index) selector(key entryKey) selector {
	return selector(x.labels.get(key.term.text()))
}

// reference returns what the entry refers to.
func (x *index) reference(id entryID) Reference {
	key := x.entries.at(id).key
	ref := Reference{GVK: x.kinds.at(key.kind).gvk, Namespace: x.names.get(key.namespace)}
	if key.term.byName() {
		ref.Name = x.names.get(key.term.text())
	} else {
		ref.Labels = x.selector(key).labels()
	}
	return ref
}

// is reports whether the entry is that of the reference.
func (x *index) is(id entryID, ref *Reference) bool {
	key := x.entries.at(id).key
	if key.term.byName() != (ref.Name != "") || x.names.get(key.namespace) != ref.Namespace || x.kinds.at(key.kind).gvk != ref.GVK {
		return false
	}
	if key.term.byName() {
		return x.names.get(key.term.text()) == ref.Name
	}
	return x.selector(key).is(ref.Labels)
}

// holdNamespace returns the text of an XR's namespace that is held once for all.
func (x *index) holdNamespace(namespace string) string {
	return x.names.get(x.names.hold(namespace))
}

func (x *index) releaseNamespace(namespace string) {
	if id, ok := x.names.find(namespace); ok {
		x.names.release(id)
	}
}
