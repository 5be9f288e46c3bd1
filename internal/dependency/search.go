// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A search is one call of Dependants or DependantsOfKind. Its memory is used again
// by a later one.
type search struct {
	gvk             schema.GroupVersionKind
	namespace, name string
	labels          map[string]string
	labelled        bool // says that labels were read

	start   recordID // where to go on
	entries []entryID
	records []recordID
}

// defaultBatch is about how many records are read while the lock is held.
const defaultBatch = 1024

// Dependants appends to dst each XR that holds a reference matching the object,
// once each and in no particular order. What dst already contains is not looked
// at. Only the object's namespace, name and labels are read, and the labels only
// where references of the kind ask for any; gvk is its kind.
//
// Many XRs are read batch by batch, in the order of their records, and the lock is
// given back in between. Each XR is looked at in one moment, so one that holds a
// matching reference all the time is found, even if it is another reference before
// and after. One that is forgotten and recorded again meanwhile may come twice.
func (t *Tracker) Dependants(dst []XR, gvk schema.GroupVersionKind, obj metav1.Object) []XR {
	s := t.searches.Get().(*search)
	defer t.putBack(s)
	s.gvk, s.namespace, s.name = gvk, obj.GetNamespace(), obj.GetName()

	for more := true; more; {
		// Some objects copy their labels to tell them: not under the lock, nor for
		// nothing.
		if !s.labelled && t.selects(gvk) {
			s.labels, s.labelled = obj.GetLabels(), true
		}
		dst, more = t.dependants(dst, s)
		if s.start > 0 && more {
			dst = slices.Grow(dst, t.batch) // which takes its time, too
		}
	}
	return dst
}

// selects reports whether any reference to the kind is by labels.
func (t *Tracker) selects(gvk schema.GroupVersionKind) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()

	return t.index.kinds.selects(gvk)
}

func (t *Tracker) dependants(dst []XR, s *search) (_ []XR, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()

	if !s.labelled && t.index.kinds.selects(s.gvk) {
		return dst, true
	}
	t.index.match(s)
	more = s.read(&t.index.entries, t.batch)
	return t.records.appendXRs(dst, s.records), more
}

// read finds the records from start on that hold any of the entries, each once, up
// to where an entry has more of them than there is room for. It reports whether
// there are more.
func (s *search) read(entries *entries, batch int) bool {
	s.records = s.records[:0]
	end := recordID(math.MaxUint32)
	each := max(1, batch/max(1, len(s.entries))+batch/32)
	for _, e := range s.entries {
		room := each
		entries.eachHolder(e, s.start, func(rec recordID) bool {
			if room == 0 {
				end = min(end, rec)
			}
			if rec >= end {
				return false
			}
			room--
			s.records = append(s.records, rec)
			return true
		})
	}
	if len(s.entries) > 1 {
		slices.Sort(s.records)
		s.records = slices.Compact(s.records)
		before, _ := slices.BinarySearch(s.records, end)
		s.records = s.records[:before]
	}
	s.start = end
	return end < math.MaxUint32
}

// DependantsOfKind appends to dst each XR that holds any reference to the kind,
// once each and in no particular order: those to wake when a kind comes or goes.
// What dst already contains is not looked at. It reads in batches, as Dependants
// does.
func (t *Tracker) DependantsOfKind(dst []XR, gvk schema.GroupVersionKind) []XR {
	s := t.searches.Get().(*search)
	defer t.putBack(s)
	s.gvk = gvk

	for more := true; more; {
		dst, more = t.dependantsOfKind(dst, s)
		if more {
			dst = slices.Grow(dst, t.batch)
		}
	}
	return dst
}

func (t *Tracker) dependantsOfKind(dst []XR, s *search) (_ []XR, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()

	s.records = s.records[:0]
	t.index.kinds.eachDependant(s.gvk, s.start, func(rec recordID) bool {
		s.start, more = rec, len(s.records) == t.batch
		if !more {
			s.records = append(s.records, rec)
		}
		return !more
	})
	return t.records.appendXRs(dst, s.records), more
}

// putBack keeps the search's memory for a later one, but nothing of the object.
func (t *Tracker) putBack(s *search) {
	const many = 4 * defaultBatch
	if cap(s.entries)+cap(s.records) > many {
		return
	}
	*s = search{entries: s.entries, records: s.records}
	t.searches.Put(s)
}

func (r *records) appendXRs(dst []XR, ids []recordID) []XR {
	for _, id := range ids {
		dst = append(dst, r.at(id).xr)
	}
	return dst
}

// match finds the entries that match the object.
func (x *index) match(s *search) {
	s.entries = s.entries[:0]
	kind := x.kinds.find(s.gvk)
	if kind == 0 {
		return
	}
	namespace, known := x.names.find(s.namespace)
	if known {
		s.entries = x.appendNamed(s.entries, kind, namespace, s.name)
	}
	if x.kinds.at(kind).selectors == 0 {
		return
	}
	s.entries = x.appendSelecting(s.entries, kind, 0, s.labels)
	if known && namespace != 0 {
		s.entries = x.appendSelecting(s.entries, kind, namespace, s.labels)
	}
}

func (x *index) appendNamed(dst []entryID, kind kindID, namespace textID, name string) []entryID {
	text, ok := x.names.find(name)
	if !ok {
		return dst
	}
	if id := x.entries.find(entryKey{kind, namespace, term(text)}); id != 0 {
		dst = append(dst, id)
	}
	return dst
}

// appendSelecting appends the entries of the namespace that select by labels which
// an object has.
func (x *index) appendSelecting(dst []entryID, kind kindID, namespace textID, labels map[string]string) []entryID {
	if everything := x.entries.find(entryKey{kind, namespace, bySelector}); everything != 0 {
		dst = append(dst, everything)
	}
	for key, value := range labels {
		pair := x.pair(kind, namespace, key, value)
		if pair == 0 {
			continue
		}
		x.pairs.each(pair, func(id entryID) {
			if x.selector(x.entries.at(id).key).matches(labels) {
				dst = append(dst, id)
			}
		})
	}
	return dst
}
