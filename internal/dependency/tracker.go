// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"runtime"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Tracker knows what each XR of one controller depends on. The package comment
// defines references, records and their life. Make one with NewTracker. All
// methods are safe for concurrent use; none of them blocks on anything but the
// tracker's own short critical sections. Arguments stay the caller's: slices and
// maps are copied, and what is returned is the caller's to change.
type Tracker struct {
	searches sync.Pool // of *search
	batch    int       // records that a search reads under one hold of the lock

	mu      sync.RWMutex // guards what follows
	records records
	index   index
	before  []use // of changeLocked, to be used again
	after   []use
}

// NewTracker returns a tracker that knows of no XR.
func NewTracker() *Tracker {
	t := &Tracker{
		searches: sync.Pool{New: func() any { return &search{} }},
		batch:    defaultBatch,
	}
	t.resetLocked()
	return t
}

// Require records that the XR's run in progress asks for something. Call it
// before reading what the requirement refers to, so that no change can fall
// between reading and recording.
func (t *Tracker) Require(xr XR, r Requirement) {
	if t.requires(xr, &r) {
		return
	}
	t.lock()
	defer t.mu.Unlock()

	id := t.recordLocked(xr)
	q := t.index.internRequirement(&r)
	if u := useOf(q.entry, required); !t.records.at(id).has(u) {
		t.index.link(id, u)
	}
	t.records.change(id, func(rec *record) {
		current := rec.current()
		// A requirement moves to the end when it is recorded again: the latest one
		// of a name is what gets seeded.
		if i := slices.Index(current.required, q); i >= 0 {
			current.required = slices.Delete(current.required, i, i+1)
			t.index.releaseAsk(q.ask)
		}
		current.required = append(current.required, q)
	})
}

// requires reports whether recording the requirement would change nothing, as it
// is when a run asks for what the last successful one asked for.
func (t *Tracker) requires(xr XR, r *Requirement) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()

	id := t.records.find(xr)
	return id != 0 && t.index.standing(t.records.at(id), r)
}

// Depend records that the XR's run in progress composes something. Call it
// before applying the resource, so that a change by somebody else that follows
// the apply at once is noticed.
func (t *Tracker) Depend(xr XR, ref Reference) {
	if t.depends(xr, ref) {
		return
	}
	t.lock()
	defer t.mu.Unlock()

	id := t.recordLocked(xr)
	e := t.index.intern(&ref)
	if u := useOf(e, composed); !t.records.at(id).has(u) {
		t.index.link(id, u)
	}
	t.records.change(id, func(rec *record) {
		current := rec.current()
		if !slices.Contains(current.composed, e) {
			current.composed = append(current.composed, e)
		}
	})
}

// depends reports whether the XR composes the reference as far as its last
// successful run, or the one in progress, has recorded.
func (t *Tracker) depends(xr XR, ref Reference) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()

	id := t.records.find(xr)
	if id == 0 {
		return false
	}
	e := t.index.find(&ref)
	if e == 0 {
		return false
	}
	rec := t.records.at(id)
	return slices.Contains(rec.succeeded.composed, e) ||
		rec.unsettled != nil && slices.Contains(rec.unsettled.current.composed, e)
}

// Track ends a run that succeeded: the arguments, which may contain duplicates
// and what was never passed to Require or Depend, become the XR's whole record.
// Of requirements with the same step, source and name the last one is seeded,
// and all are live. An XR that depends on nothing has a record, too.
//
// Where the record says all that already, in the same order, no lock is taken
// that readers would wait for, and no memory.
func (t *Tracker) Track(xr XR, composes []Reference, requires []Requirement) {
	if t.stands(xr, composes, requires) {
		return
	}
	t.lock()
	defer t.mu.Unlock()

	id := t.recordLocked(xr)
	last := t.records.at(id).runs()
	next := t.index.internRun(&last[succeeded], composes, requires)
	t.changeLocked(id, func(rec *record) { rec.succeeded, rec.unsettled = next, nil })
	t.index.releaseAsks(last[:]...)
}

// stands reports whether the record is exactly what a run ends with.
func (t *Tracker) stands(xr XR, composes []Reference, requires []Requirement) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()

	id := t.records.find(xr)
	if id == 0 {
		return false
	}
	rec := t.records.at(id)
	return rec.unsettled == nil && t.index.isRun(&rec.succeeded, composes, requires)
}

// Fail ends a run that did not succeed: the XR's record becomes that of its last
// success together with what this run recorded. It does nothing for an XR
// without a record.
func (t *Tracker) Fail(xr XR) {
	t.lock()
	defer t.mu.Unlock()

	id := t.records.find(xr)
	if id == 0 || t.records.at(id).unsettled == nil {
		return
	}
	earlier := t.records.at(id).unsettled.failed
	t.changeLocked(id, func(rec *record) {
		if rec.unsettled.current.empty() {
			rec.unsettled = nil
			return
		}
		rec.unsettled = &unsettled{failed: rec.unsettled.current}
	})
	t.index.releaseAsks(earlier)
}

// Forget removes the XR's record, if there is one.
func (t *Tracker) Forget(xr XR) {
	t.lock()
	defer t.mu.Unlock()

	id := t.records.find(xr)
	if id == 0 {
		return
	}
	last := t.records.at(id).runs()
	t.changeLocked(id, func(rec *record) { rec.succeeded, rec.unsettled = run{}, nil })
	t.index.releaseAsks(last[:]...)
	t.index.releaseNamespace(xr.Namespace)
	t.records.remove(id)
	if t.records.table.held == 0 {
		// What was given out for the most that there ever was is given back.
		t.resetLocked()
	}
}

// Requirements returns what to seed into the XR's step: of the sources that are
// seeded, for each source and name the reference recorded last, in order of
// source, then name.
func (t *Tracker) Requirements(xr XR, step string) []Requirement {
	t.mu.RLock()
	defer t.mu.RUnlock()

	id := t.records.find(xr)
	if id == 0 {
		return nil
	}
	return t.index.seeds(t.records.at(id), step)
}

// HasKind reports whether a live reference to the kind exists.
func (t *Tracker) HasKind(gvk schema.GroupVersionKind) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()

	return t.index.kinds.live(gvk)
}

// GVKs returns every kind with a live reference, sorted by group, version and
// kind.
func (t *Tracker) GVKs() []schema.GroupVersionKind {
	t.mu.RLock()
	gvks := make([]schema.GroupVersionKind, 0, len(t.index.kinds.stats))
	for _, kind := range t.index.kinds.stats {
		gvks = append(gvks, kind.GVK)
	}
	t.mu.RUnlock()

	slices.SortFunc(gvks, CompareGVKs)
	return gvks
}

// lock for a change. Searches that are under way go first, and whatever else wants
// to run: a search is soon over, but one that has to wait is parked, and comes back
// much later. BenchmarkContention measures it.
func (t *Tracker) lock() {
	if t.mu.TryLock() {
		return
	}
	runtime.Gosched()
	t.mu.Lock()
}

func (t *Tracker) recordLocked(xr XR) recordID {
	if id := t.records.find(xr); id != 0 {
		return id
	}
	return t.records.add(t.index.holdNamespace(xr.Namespace), xr.Name)
}

// changeLocked changes the runs of a record, and in the index what differs by
// that.
func (t *Tracker) changeLocked(id recordID, how func(*record)) {
	rec := t.records.at(id)
	t.before = rec.appendUses(t.before[:0])
	t.records.change(id, how)
	t.after = rec.appendUses(t.after[:0])
	t.index.relink(id, t.before, t.after)
	if cap(t.before)+cap(t.after) > manyUses {
		t.before, t.after, t.index.scratch = nil, nil, nil
	}
}

// manyUses are worth giving the memory back that a change of them took.
const manyUses = 4096

func (t *Tracker) resetLocked() {
	t.records = newRecords()
	t.index = newIndex()
	t.before, t.after = nil, nil
}
