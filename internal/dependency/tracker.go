// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Tracker knows what each XR of one controller depends on. The package comment
// defines references, records and their life. Make one with NewTracker. All
// methods are safe for concurrent use; none of them blocks on anything but the
// tracker's own short critical sections. Arguments stay the caller's: slices and
// maps are copied, and what is returned is the caller's to change.
type Tracker struct {
	mu      sync.RWMutex
	records map[XR]*record
	index   index
}

// NewTracker returns a tracker that knows of no XR.
func NewTracker() *Tracker {
	return &Tracker{records: map[XR]*record{}, index: newIndex()}
}

// Require records that the XR's run in progress asks for something. Call it
// before reading what the requirement refers to, so that no change can fall
// between reading and recording.
func (t *Tracker) Require(xr XR, r Requirement) {
	t.mu.Lock()
	defer t.mu.Unlock()

	rec := t.recordLocked(xr)
	q := t.holdRequirementLocked(rec, r)
	// A requirement moves to the end when it is recorded again: the latest one
	// of a name is what gets seeded.
	if i := slices.Index(rec.current.required, q); i >= 0 {
		rec.current.required = slices.Delete(rec.current.required, i, i+1)
		t.index.release(rec, q.entry, required)
	}
	rec.current.required = append(rec.current.required, q)
}

// Depend records that the XR's run in progress composes something. Call it
// before applying the resource, so that a change by somebody else that follows
// the apply at once is noticed.
func (t *Tracker) Depend(xr XR, ref Reference) {
	t.mu.Lock()
	defer t.mu.Unlock()

	rec := t.recordLocked(xr)
	e := t.index.hold(rec, ref, composed)
	if slices.Contains(rec.current.composed, e) {
		t.index.release(rec, e, composed)
		return
	}
	rec.current.composed = append(rec.current.composed, e)
}

// Track ends a run that succeeded: the arguments, which may contain duplicates
// and what was never passed to Require or Depend, become the XR's whole record.
// Of requirements with the same step, source and name the last one is seeded,
// and all are live. An XR that depends on nothing has a record, too.
func (t *Tracker) Track(xr XR, composes []Reference, requires []Requirement) {
	t.mu.Lock()
	defer t.mu.Unlock()

	rec := t.recordLocked(xr)
	next := run{
		composed: make([]*entry, 0, len(composes)),
		required: make([]requirement, 0, len(requires)),
	}
	for _, ref := range composes {
		next.composed = append(next.composed, t.index.hold(rec, ref, composed))
	}
	for _, r := range requires {
		next.required = append(next.required, t.holdRequirementLocked(rec, r))
	}
	// Released only now, entries that the new record shares with the old one
	// stay where they are instead of being removed and made again.
	t.releaseLocked(rec)
	rec.succeeded = next
}

// Fail ends a run that did not succeed: the XR's record becomes that of its last
// success together with what this run recorded. It does nothing for an XR
// without a record.
func (t *Tracker) Fail(xr XR) {
	t.mu.Lock()
	defer t.mu.Unlock()

	rec, ok := t.records[xr]
	if !ok {
		return
	}
	t.releaseRunLocked(rec, &rec.failed)
	rec.failed, rec.current = rec.current, run{}
}

// Forget removes the XR's record, if there is one.
func (t *Tracker) Forget(xr XR) {
	t.mu.Lock()
	defer t.mu.Unlock()

	rec, ok := t.records[xr]
	if !ok {
		return
	}
	t.releaseLocked(rec)
	delete(t.records, xr)
}

// Requirements returns what to seed into the XR's step: of the sources that are
// seeded, for each source and name the reference recorded last, in order of
// source, then name.
func (t *Tracker) Requirements(xr XR, step string) []Requirement {
	t.mu.RLock()
	defer t.mu.RUnlock()

	rec, ok := t.records[xr]
	if !ok {
		return nil
	}
	return rec.seeds(step)
}

// Dependants appends to dst each XR that holds a reference matching the object,
// once each and in no particular order. What dst already contains is not looked
// at. Only the object's namespace, name and labels are read; gvk is its kind.
func (t *Tracker) Dependants(dst []XR, gvk schema.GroupVersionKind, obj metav1.Object) []XR {
	seen := identity{namespace: obj.GetNamespace(), name: obj.GetName(), labels: obj.GetLabels()}
	start := len(dst)

	dst, entries := t.matches(dst, gvk, seen)
	if entries <= 1 {
		return dst
	}
	// Only several entries can name the same XR. Sorting needs no memory, and
	// happens outside the lock.
	slices.SortFunc(dst[start:], compareXRs)
	return dst[:start+len(slices.Compact(dst[start:]))]
}

// matches appends the holders of each matching entry, and says how many entries
// matched.
func (t *Tracker) matches(dst []XR, gvk schema.GroupVersionKind, obj identity) ([]XR, int) {
	t.mu.RLock()
	defer t.mu.RUnlock()

	k, ok := t.index.kinds[gvk]
	if !ok {
		return dst, 0
	}
	return k.match(dst, obj)
}

// DependantsOfKind appends to dst each XR that holds any reference to the kind,
// once each and in no particular order: those to wake when a kind comes or goes.
// What dst already contains is not looked at.
func (t *Tracker) DependantsOfKind(dst []XR, gvk schema.GroupVersionKind) []XR {
	t.mu.RLock()
	defer t.mu.RUnlock()

	if k, ok := t.index.kinds[gvk]; ok {
		for rec := range k.holders {
			dst = append(dst, rec.xr)
		}
	}
	return dst
}

// HasKind reports whether a live reference to the kind exists.
func (t *Tracker) HasKind(gvk schema.GroupVersionKind) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()

	_, ok := t.index.kinds[gvk]
	return ok
}

// GVKs returns every kind with a live reference, sorted by group, version and
// kind.
func (t *Tracker) GVKs() []schema.GroupVersionKind {
	t.mu.RLock()
	gvks := make([]schema.GroupVersionKind, 0, len(t.index.kinds))
	for gvk := range t.index.kinds {
		gvks = append(gvks, gvk)
	}
	t.mu.RUnlock()

	slices.SortFunc(gvks, CompareGVKs)
	return gvks
}

func (t *Tracker) recordLocked(xr XR) *record {
	rec, ok := t.records[xr]
	if !ok {
		rec = &record{xr: xr}
		t.records[xr] = rec
	}
	return rec
}

func (t *Tracker) holdRequirementLocked(rec *record, r Requirement) requirement {
	return requirement{
		step:    r.Step,
		name:    r.Name,
		from:    r.From,
		subject: r.Subject,
		entry:   t.index.hold(rec, r.Reference, required),
	}
}

func (t *Tracker) releaseLocked(rec *record) {
	for _, part := range rec.parts() {
		t.releaseRunLocked(rec, part)
	}
}

func (t *Tracker) releaseRunLocked(rec *record, part *run) {
	for _, e := range part.composed {
		t.index.release(rec, e, composed)
	}
	for _, q := range part.required {
		t.index.release(rec, q.entry, required)
	}
	*part = run{}
}
