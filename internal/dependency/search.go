// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A search is the memory of one call of Dependants, used again by a later one.
type search struct {
	entries []entryID
	records []recordID
}

// defaultBatch is how many records are read at most while the lock is held: of
// each matching entry, or of a kind.
const defaultBatch = 1024

// Dependants appends to dst each XR that holds a reference matching the object,
// once each and in no particular order. What dst already contains is not looked
// at. Only the object's namespace, name and labels are read; gvk is its kind.
//
// Many XRs are read batch by batch, in the order of their records, and the lock is
// given back in between. Each XR is looked at in one moment, so one that holds a
// matching reference all the time is found, even if it is another reference before
// and after.
func (t *Tracker) Dependants(dst []XR, gvk schema.GroupVersionKind, obj metav1.Object) []XR {
	s := t.searches.Get().(*search)
	defer t.searches.Put(s)

	more := true
	for start := recordID(0); more; {
		dst, start, more = t.dependants(dst, s, gvk, obj, start)
	}
	return dst
}

func (t *Tracker) dependants(dst []XR, s *search, gvk schema.GroupVersionKind, obj metav1.Object, start recordID) ([]XR, recordID, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()

	s.entries = t.index.matching(s.entries[:0], gvk, obj)
	next, more := s.read(&t.index.entries, start, t.batch)
	return t.records.appendXRs(dst, s.records), next, more
}

// read finds the records from start on that hold any of the entries, each once:
// those up to where the first entry has more of them than a batch. It returns
// where to go on.
func (s *search) read(entries *entries, start recordID, batch int) (next recordID, more bool) {
	s.records = s.records[:0]
	end := recordID(math.MaxUint32)
	for _, e := range s.entries {
		room := batch
		entries.eachHolder(e, start, func(rec recordID) bool {
			if room == 0 {
				end = min(end, rec)
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
	return end, end < math.MaxUint32
}

// DependantsOfKind appends to dst each XR that holds any reference to the kind,
// once each and in no particular order: those to wake when a kind comes or goes.
// What dst already contains is not looked at. It reads in batches, as Dependants
// does.
func (t *Tracker) DependantsOfKind(dst []XR, gvk schema.GroupVersionKind) []XR {
	s := t.searches.Get().(*search)
	defer t.searches.Put(s)

	more := true
	for start := recordID(0); more; {
		dst, start, more = t.dependantsOfKind(dst, s, gvk, start)
	}
	return dst
}

func (t *Tracker) dependantsOfKind(dst []XR, s *search, gvk schema.GroupVersionKind, start recordID) (_ []XR, next recordID, more bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()

	s.records = s.records[:0]
	t.index.kinds.at(t.index.kinds.find(gvk)).dependants.each(start, func(rec recordID) bool {
		next, more = rec, len(s.records) == t.batch
		if !more {
			s.records = append(s.records, rec)
		}
		return !more
	})
	return t.records.appendXRs(dst, s.records), next, more
}

func (r *records) appendXRs(dst []XR, ids []recordID) []XR {
	for _, id := range ids {
		dst = append(dst, r.at(id).xr)
	}
	return dst
}

// matching appends the entries that match the object.
func (x *index) matching(dst []entryID, gvk schema.GroupVersionKind, obj metav1.Object) []entryID {
	kind := x.kinds.find(gvk)
	if kind == 0 {
		return dst
	}
	namespace, known := x.names.find(obj.GetNamespace())
	if known {
		dst = x.appendNamed(dst, kind, namespace, obj.GetName())
	}
	if x.kinds.at(kind).selectors == 0 {
		return dst // and the labels, which take some objects a copy to tell, don't matter
	}
	labels := obj.GetLabels()
	dst = x.appendSelecting(dst, kind, 0, labels)
	if known && namespace != 0 {
		dst = x.appendSelecting(dst, kind, namespace, labels)
	}
	return dst
}

func (x *index) appendNamed(dst []entryID, kind kindID, namespace textID, name string) []entryID {
	text, ok := x.names.find(name)
	if !ok || text == 0 {
		return dst
	}
	if id := x.entries.find(entryKey{kind, namespace, what(text)}); id != 0 {
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
		x.pairs.at(pair).filed.each(0, func(id entryID) bool {
			if x.selector(x.entries.at(id).key).matches(labels) {
				dst = append(dst, id)
			}
			return true
		})
	}
	return dst
}
