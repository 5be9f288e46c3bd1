// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"hash/maphash"
	"strings"
)

// A textID stands for a text. Zero is the empty one.
type textID uint32

// texts holds each text once, for as long as anything refers to it.
type texts struct {
	table table[string]
	uses  pages[uint32] // by text
	bytes int           // that the texts take
	seed  maphash.Seed
}

func newTexts() texts {
	seed := maphash.MakeSeed()
	t := texts{
		table: newTable(func(s *string) uint64 { return maphash.String(seed, *s) }),
		seed:  seed,
	}
	t.uses.grow() // of the empty text, which is not counted
	return t
}

func (t *texts) get(id textID) string {
	return *t.table.at(uint32(id))
}

// find reports whether anything refers to the text, and by which number.
func (t *texts) find(s string) (textID, bool) {
	if s == "" {
		return 0, true
	}
	id := t.table.find(maphash.String(t.seed, s), func(held *string) bool { return *held == s })
	return textID(id), id != 0
}

// hold refers to the text once more.
func (t *texts) hold(s string) textID {
	id, ok := t.find(s)
	if !ok {
		// A copy of its own: the caller's may be a part of something large.
		id = textID(t.table.add(strings.Clone(s)))
		t.bytes += allocated(len(s))
		if uint32(id) == t.uses.len {
			t.uses.grow()
		}
	}
	t.again(id)
	return id
}

// again refers once more to a text that something refers to.
func (t *texts) again(id textID) {
	if id != 0 {
		*t.uses.at(uint32(id))++
	}
}

// release undoes one hold.
func (t *texts) release(id textID) {
	if id == 0 {
		return
	}
	uses := t.uses.at(uint32(id))
	if *uses == 0 {
		panic("dependency: a text was released that nothing refers to")
	}
	if *uses--; *uses == 0 {
		t.bytes -= allocated(len(t.get(id)))
		t.table.remove(uint32(id))
	}
}
