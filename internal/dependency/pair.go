// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import "hash/maphash"

// A pairID stands for a pair. Zero is none.
type pairID uint32

// A pair is a label that selectors of a kind ask for, in a namespace or, where
// that is empty, in all.
type pair struct {
	key   pairKey
	filed group // entries
}

type pairKey struct {
	kind       kindID
	namespace  textID // of the names
	key, value textID // of the labels
}

func (k pairKey) hash(seed maphash.Seed) uint64 { return maphash.Comparable(seed, k) }

// pairs files each entry by labels under one of its pairs, so that an object's
// labels lead to it once.
type pairs struct {
	table table[pair]
	filed groups[entryID]
	under map[entryID]pairID
	seed  maphash.Seed
}

func newPairs() pairs {
	seed := maphash.MakeSeed()
	return pairs{
		table: newTable(func(p *pair) uint64 { return p.key.hash(seed) }),
		under: map[entryID]pairID{},
		seed:  seed,
	}
}

func (p *pairs) at(id pairID) *pair {
	return p.table.at(uint32(id))
}

func (p *pairs) find(key pairKey) pairID {
	return pairID(p.table.find(key.hash(p.seed), func(held *pair) bool { return held.key == key }))
}

// file puts an entry under the pair, and reports whether the pair is new.
func (p *pairs) file(e entryID, key pairKey) bool {
	id := p.find(key)
	made := id == 0
	if made {
		id = pairID(p.table.add(pair{key: key}))
	}
	held := p.at(id)
	held.filed, _ = p.filed.add(held.filed, e)
	p.under[e] = id
	return made
}

// unfile takes an entry out, if it is filed, and returns its pair and whether
// nothing is left of that.
func (p *pairs) unfile(e entryID) (pairKey, bool) {
	id, ok := p.under[e]
	if !ok {
		return pairKey{}, false
	}
	delete(p.under, e)
	held := p.at(id)
	key := held.key
	held.filed, _ = p.filed.remove(held.filed, e)
	if held.filed != 0 {
		return key, false
	}
	p.table.remove(uint32(id))
	return key, true
}

// each calls visit with the entries that are filed under the pair.
func (p *pairs) each(id pairID, visit func(entryID)) {
	p.filed.each(p.at(id).filed, 0, func(e entryID) bool {
		visit(e)
		return true
	})
}

// count says how many entries are filed under the pair.
func (p *pairs) count(id pairID) int {
	return p.filed.len(p.at(id).filed)
}
