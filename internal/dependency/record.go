// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"hash/maphash"
	"slices"
	"strings"
)

// A recordID stands for a record. Zero is none.
type recordID uint32

// A record is everything one XR depends on: the forward side of the index.
type record struct {
	xr        XR
	succeeded run // the last successful run

	// What came after. Nil where that is nothing, as it is of most XRs.
	unsettled *unsettled
}

type unsettled struct {
	failed  run // the run after the last successful one, if that failed
	current run // the run in progress
}

// A run is what one run of an XR recorded, in the order of recording. The same
// reference may be in it several times.
type run struct {
	composed []entryID
	required []requirement
}

// A requirement is a Requirement made of numbers: small, and comparable.
type requirement struct {
	ask
	entry entryID
}

// An ask is what a requirement says but for its reference.
type ask struct {
	step, name textID
	subject    kindID
	from       Source
}

// sameName says that of the two only the later one is seeded.
func (a ask) sameName(b ask) bool {
	return a.name == b.name && a.step == b.step && a.from == b.from
}

// Where runs has them.
const (
	succeeded = iota
	failed
	current
)

// runs returns the record's runs from the oldest to the newest.
func (r *record) runs() [3]run {
	runs := [3]run{r.succeeded}
	if r.unsettled != nil {
		runs[1], runs[2] = r.unsettled.failed, r.unsettled.current
	}
	return runs
}

// current returns the run in progress, to be changed.
func (r *record) current() *run {
	if r.unsettled == nil {
		r.unsettled = &unsettled{}
	}
	return &r.unsettled.current
}

// appendUses appends what the record has, sorted, each use once.
func (r *record) appendUses(dst []use) []use {
	for _, run := range r.runs() {
		for _, e := range run.composed {
			dst = append(dst, useOf(e, composed))
		}
		for _, q := range run.required {
			dst = append(dst, useOf(q.entry, required))
		}
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

// has reports whether any of the record's runs has the use.
func (r *record) has(u use) bool {
	for _, run := range r.runs() {
		if run.has(u) {
			return true
		}
	}
	return false
}

func (r *run) has(u use) bool {
	if u.role() == composed {
		return slices.Contains(r.composed, u.entry())
	}
	return slices.ContainsFunc(r.required, func(q requirement) bool { return q.entry == u.entry() })
}

func (r *run) empty() bool {
	return len(r.composed) == 0 && len(r.required) == 0
}

// records holds the record of each XR.
type records struct {
	table table[record]
	seed  maphash.Seed
	bytes int // of the names of XRs, and of the lists of runs
}

func newRecords() records {
	seed := maphash.MakeSeed()
	return records{
		table: newTable(func(r *record) uint64 { return maphash.Comparable(seed, r.xr) }),
		seed:  seed,
	}
}

func (r *records) at(id recordID) *record {
	return r.table.at(uint32(id))
}

// find returns the XR's record, or zero.
func (r *records) find(xr XR) recordID {
	return recordID(r.table.find(maphash.Comparable(r.seed, xr), func(held *record) bool { return held.xr == xr }))
}

// add makes an empty record. The namespace stays the caller's, who has it from
// where it is held once.
func (r *records) add(namespace, name string) recordID {
	r.bytes += allocated(len(name))
	return recordID(r.table.add(record{xr: XR{Namespace: namespace, Name: strings.Clone(name)}}))
}

func (r *records) remove(id recordID) {
	r.bytes -= allocated(len(r.at(id).xr.Name))
	r.table.remove(uint32(id))
}

// change lets the lists of a record be changed, and keeps count of what they take.
func (r *records) change(id recordID, how func(*record)) {
	rec := r.at(id)
	r.bytes -= rec.bytes()
	how(rec)
	r.bytes += rec.bytes()
}
