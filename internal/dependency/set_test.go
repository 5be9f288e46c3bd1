// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A set is a sorted list without duplicates.
func TestSetIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set set[uint32]
		spec := map[uint32]bool{}
		span := func(t *rapid.T) (first, last, step uint32) {
			first = rapid.Uint32Range(0, 3000).Draw(t, "first")
			return first, first + rapid.Uint32Range(0, 2000).Draw(t, "length"), rapid.Uint32Range(1, 3).Draw(t, "step")
		}

		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				same(t, "len", len(spec), set.len())
				chunksAreInOrder(t, &set)
			},
			"Add": func(t *rapid.T) {
				first, last, step := span(t)
				for n := first; n <= last; n += step {
					same(t, "new", !spec[n], set.add(n))
					spec[n] = true
				}
			},
			"Remove": func(t *rapid.T) {
				first, last, step := span(t)
				for n := first; n <= last; n += step {
					same(t, "was there", spec[n], set.remove(n))
					delete(spec, n)
				}
			},
			"Each": func(t *rapid.T) {
				start := rapid.Uint32Range(0, 6000).Draw(t, "start")
				most := rapid.IntRange(1, 2000).Draw(t, "most")
				var want, got []uint32
				for n := range uint32(6000) {
					if spec[n] && n >= start && len(want) < most {
						want = append(want, n)
					}
				}
				set.each(start, func(n uint32) bool {
					got = append(got, n)
					return len(got) < most
				})
				same(t, "each", want, got)
			},
		})
	})
}

func chunksAreInOrder(t fataler, s *set[uint32]) {
	t.Helper()
	var all []uint32
	for i, chunk := range s.chunks {
		if len(chunk) == 0 || len(chunk) > chunkLen {
			t.Fatalf("chunk %d has %d numbers", i, len(chunk))
		}
		all = append(all, chunk...)
	}
	if !slices.IsSorted(all) {
		t.Fatalf("the chunks are not in order: %v", all)
	}
}

// Numbers come mostly in order, and go in any.
func TestSetsAreDense(t *testing.T) {
	const numbers = 100 * chunkLen
	var s set[uint32]
	for n := range uint32(numbers) {
		s.add(n)
	}
	same(t, "chunks of numbers that came in order", 100, len(s.chunks))

	for n := range uint32(numbers) {
		if n%64 != 0 {
			s.remove(n)
		}
	}
	const left = numbers / 64
	if most := 4*left/chunkLen + 1; len(s.chunks) > most {
		t.Errorf("%d chunks hold the %d numbers that are left, want at most %d", len(s.chunks), left, most)
	}
	room := 0
	for _, chunk := range s.chunks {
		room += cap(chunk)
	}
	if room > 4*left {
		t.Errorf("there is room for %d numbers, of which %d are left", room, left)
	}
}
