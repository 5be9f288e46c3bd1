// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import "math/bits"

// A table keeps rows under numbers and finds a row by what it says. A number
// stays a row's own until the row is removed, and is then given to another; none
// is zero. The numbers are what makes the tracker small: whatever refers to a row
// takes four bytes, and is nothing that a garbage collector has to follow.
//
// Rows that share a bucket are chained. There are one to two of them on average:
// a bucket is split when there would be more, and joined to another when there
// would be fewer, one bucket at a time (linear hashing). So adding and removing
// cost the same however many rows there are. So it does with Go's maps, which would
// hold what the rows say once more.
type table[T any] struct {
	rows    pages[T]
	links   pages[uint32] // by row: the next one of its bucket, or the next free one
	buckets pages[uint32] // the first row of each
	free    uint32        // the first of the rows that were removed
	held    int

	// hash of what a row says. Rows that say the same have the same.
	hash func(*T) uint64
}

// perBucket rows share a bucket at most, on average.
const perBucket = 2

func newTable[T any](hash func(*T) uint64) table[T] {
	t := table[T]{hash: hash}
	t.rows.grow() // the row that zero would name
	t.links.grow()
	t.buckets.grow()
	return t
}

// at returns the row, which stays in its place until it is removed.
func (t *table[T]) at(n uint32) *T {
	return t.rows.at(n)
}

// find returns the row of the hash that is the one looked for, or zero.
func (t *table[T]) find(hash uint64, is func(*T) bool) uint32 {
	n := *t.buckets.at(t.bucket(hash))
	for n != 0 && !is(t.rows.at(n)) {
		n = *t.links.at(n)
	}
	return n
}

// add puts a row in that find does not find.
func (t *table[T]) add(value T) uint32 {
	n := t.free
	if n == 0 {
		n = t.rows.grow()
		t.links.grow()
	} else {
		t.free = *t.links.at(n)
	}
	*t.rows.at(n) = value
	t.chain(n)
	if t.held++; t.held > perBucket*int(t.buckets.len) {
		t.split()
	}
	return n
}

// remove takes a row out.
func (t *table[T]) remove(n uint32) {
	row := t.rows.at(n)
	link := t.buckets.at(t.bucket(t.hash(row)))
	for *link != n {
		if *link == 0 {
			panic("dependency: a row was removed that the table doesn't have")
		}
		link = t.links.at(*link)
	}
	*link = *t.links.at(n)

	var none T
	*row = none
	*t.links.at(n) = t.free
	t.free = n
	if t.held--; t.buckets.len > 1 && t.held < int(t.buckets.len) {
		t.join()
	}
}

// bucket returns the one that a hash belongs to. With as many buckets as a power
// of two it is told by as many bits; in between, the buckets that were not split
// yet are told by one bit less.
func (t *table[T]) bucket(hash uint64) uint32 {
	mask := uint32(1)<<bits.Len32(t.buckets.len-1) - 1
	if b := uint32(hash) & mask; b < t.buckets.len {
		return b
	}
	return uint32(hash) & (mask >> 1)
}

func (t *table[T]) chain(n uint32) {
	first := t.buckets.at(t.bucket(t.hash(t.rows.at(n))))
	*t.links.at(n) = *first
	*first = n
}

// split adds a bucket, and divides with it the one that it doubles.
func (t *table[T]) split() {
	last := t.buckets.grow()
	t.redistribute(twin(last))
}

// join removes the last bucket, whose rows go back to the one that it doubled.
func (t *table[T]) join() {
	last := t.buckets.len - 1
	n := *t.buckets.at(last)
	t.buckets.shrink()
	t.redistributeFrom(n)
}

func (t *table[T]) redistribute(bucket uint32) {
	first := t.buckets.at(bucket)
	n := *first
	*first = 0
	t.redistributeFrom(n)
}

func (t *table[T]) redistributeFrom(n uint32) {
	for n != 0 {
		next := *t.links.at(n)
		t.chain(n)
		n = next
	}
}

// twin returns the bucket that another doubles: the one without its highest bit.
func twin(bucket uint32) uint32 {
	return bucket &^ (1 << (bits.Len32(bucket) - 1))
}

// pages is a list that grows and shrinks at its end, a page at a time: nothing
// that it holds is ever moved, however long it is.
type pages[T any] struct {
	pages []*[pageLen]T
	len   uint32
}

const pageLen = 64

func (p *pages[T]) at(i uint32) *T {
	return &p.pages[i/pageLen][i%pageLen]
}

// grow appends a zero, and returns its place.
func (p *pages[T]) grow() uint32 {
	i := p.len
	if int(i/pageLen) == len(p.pages) {
		p.pages = append(p.pages, new([pageLen]T))
	}
	p.len++
	return i
}

// shrink removes the last one.
func (p *pages[T]) shrink() {
	p.len--
	var none T
	*p.at(p.len) = none
	if p.len%pageLen == 0 {
		last := len(p.pages) - 1
		p.pages[last] = nil
		p.pages = p.pages[:last]
	}
}
