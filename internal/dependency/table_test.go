// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A table is a map from what a row says to its number. A poor hash makes long
// chains.
func TestTableIsAMap(t *testing.T) {
	hashes := map[string]func(*uint64) uint64{
		"SpreadHash": func(row *uint64) uint64 { return *row * 0x9e3779b97f4a7c15 >> 32 },
		"PoorHash":   func(row *uint64) uint64 { return *row % 7 },
		"OneHash":    func(*uint64) uint64 { return 0 },
	}
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { tableIsAMap(t, hash) })
		})
	}
}

func tableIsAMap(t *rapid.T, hash func(*uint64) uint64) {
	table, spec := newTable(hash), map[uint64]uint32{}
	find := func(row uint64) uint32 {
		return table.find(hash(&row), func(held *uint64) bool { return *held == row })
	}
	rows := rapid.Uint64Range(1, 300)

	t.Repeat(map[string]func(*rapid.T){
		"": func(t *rapid.T) {
			same(t, "held", len(spec), table.held)
			fewInEachBucket(t, &table)
		},
		"Add": func(t *rapid.T) {
			for _, row := range rapid.SliceOfNDistinct(rows, 1, 100, rapid.ID).Draw(t, "rows") {
				if _, ok := spec[row]; !ok {
					spec[row] = table.add(row)
				}
			}
		},
		"Remove": func(t *rapid.T) {
			for _, row := range rapid.SliceOfNDistinct(rows, 1, 100, rapid.ID).Draw(t, "rows") {
				if n, ok := spec[row]; ok {
					table.remove(n)
					delete(spec, row)
				}
			}
		},
		"Find": func(t *rapid.T) {
			row := rows.Draw(t, "row")
			same(t, "found", spec[row], find(row))
		},
	})

	for row, n := range spec {
		same(t, "found", n, find(row))
		same(t, "row", row, *table.at(n))
	}
	numbers := slices.Collect(maps.Values(spec))
	slices.Sort(numbers)
	same(t, "numbers of their own", len(spec), len(slices.Compact(numbers)))
	if slices.Contains(numbers, 0) {
		t.Fatalf("a row has the number zero")
	}
}

// fewInEachBucket holds the table to as many buckets as its rows need.
func fewInEachBucket(t fataler, table *table[uint64]) {
	t.Helper()
	buckets := int(table.buckets.len)
	if table.held > perBucket*buckets || buckets > max(1, table.held) {
		t.Fatalf("%d rows are in %d buckets", table.held, buckets)
	}
}

func TestNumbersAreGivenAgain(t *testing.T) {
	table := newTable(func(row *uint64) uint64 { return *row })
	for i := range uint64(1000) {
		table.remove(table.add(i))
		table.add(i + 1000)
		if i%2 == 1 {
			table.remove(table.find(i+1000, func(held *uint64) bool { return *held == i+1000 }))
		}
	}
	same(t, "held", 500, table.held)
	if most := uint32(502); table.rows.len > most {
		t.Errorf("%d rows were made for 500 and one at a time, want at most %d", table.rows.len, most)
	}
}

func TestPagesGrowAndShrink(t *testing.T) {
	var p pages[int]
	for i := range 3 * pageLen {
		same(t, "place", uint32(i), p.grow())
		*p.at(uint32(i)) = i
	}
	first := p.at(0)
	for range 2 * pageLen {
		p.shrink()
	}
	same(t, "pages", 1, len(p.pages))
	same(t, "the last one left", pageLen-1, *p.at(pageLen - 1))
	same(t, "what comes back is empty", 0, *p.at(p.grow()))
	if p.at(0) != first {
		t.Error("growing and shrinking moved what was there")
	}
}
