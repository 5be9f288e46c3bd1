// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import "slices"

// A set holds numbers in order, in chunks of which each is in order and none is
// empty: little more than four bytes a number if they are many, and no change
// moves more than a chunk. The zero set is empty.
type set[N ~uint32] struct {
	chunks [][]N
}

// chunkLen is what a chunk holds at most.
const chunkLen = 512

// add reports whether the number is new.
func (s *set[N]) add(n N) bool {
	if len(s.chunks) == 0 {
		s.chunks = [][]N{{n}}
		return true
	}
	i := s.chunkOf(n)
	at, had := slices.BinarySearch(s.chunks[i], n)
	switch {
	case had:
		return false
	case len(s.chunks[i]) < chunkLen:
		s.chunks[i] = slices.Insert(s.chunks[i], at, n)
	case at == chunkLen && i == len(s.chunks)-1:
		// Numbers are mostly given out in order: a full chunk stays full.
		s.chunks = append(s.chunks, []N{n})
	default:
		s.split(i)
		return s.add(n)
	}
	return true
}

// remove reports whether the number was there.
func (s *set[N]) remove(n N) bool {
	if len(s.chunks) == 0 {
		return false
	}
	i := s.chunkOf(n)
	at, had := slices.BinarySearch(s.chunks[i], n)
	if !had {
		return false
	}
	s.chunks[i] = slices.Delete(s.chunks[i], at, at+1)
	s.tidy(i)
	return true
}

// each calls visit in order with the numbers that are not before start, until
// visit returns false.
func (s *set[N]) each(start N, visit func(N) bool) {
	if len(s.chunks) == 0 {
		return
	}
	i := s.chunkOf(start)
	at, _ := slices.BinarySearch(s.chunks[i], start)
	for ; i < len(s.chunks); i, at = i+1, 0 {
		for _, n := range s.chunks[i][at:] {
			if !visit(n) {
				return
			}
		}
	}
}

func (s *set[N]) len() int {
	n := 0
	for _, chunk := range s.chunks {
		n += len(chunk)
	}
	return n
}

// only returns the number if there is just one.
func (s *set[N]) only() (N, bool) {
	if len(s.chunks) == 1 && len(s.chunks[0]) == 1 {
		return s.chunks[0][0], true
	}
	return 0, false
}

// chunkOf returns where a number belongs: the last chunk that does not begin
// after it, or the first.
func (s *set[N]) chunkOf(n N) int {
	i, found := slices.BinarySearchFunc(s.chunks, n, func(chunk []N, n N) int {
		return int(int64(chunk[0]) - int64(n))
	})
	if found || i == 0 {
		return i
	}
	return i - 1
}

// split makes two of a full chunk.
func (s *set[N]) split(i int) {
	chunk := s.chunks[i]
	s.chunks = slices.Insert(s.chunks, i+1, slices.Clone(chunk[chunkLen/2:]))
	s.chunks[i] = slices.Clone(chunk[:chunkLen/2])
}

// tidy gives back what a chunk needs no more after a removal.
func (s *set[N]) tidy(i int) {
	chunk := s.chunks[i]
	switch {
	case len(chunk) == 0:
		s.chunks = slices.Delete(s.chunks, i, i+1)
	case s.join(i) || i > 0 && s.join(i-1):
	case len(chunk) < cap(chunk)/4:
		s.chunks[i] = slices.Clone(chunk)
	}
}

// join makes one of a chunk and the next if they are short.
func (s *set[N]) join(i int) bool {
	if i+1 == len(s.chunks) || len(s.chunks[i])+len(s.chunks[i+1]) > chunkLen/2 {
		return false
	}
	s.chunks[i] = append(s.chunks[i], s.chunks[i+1]...)
	s.chunks = slices.Delete(s.chunks, i+1, i+2)
	return true
}
