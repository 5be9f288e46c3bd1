// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// internRun returns what a run recorded as numbers. It holds what it names, until it is
// released; entries that nobody held before must be linked. Most of a record is
// what it was before: last is where that is looked for first.
func (x *index) internRun(last *run, composes []Reference, requires []Requirement) run {
	return run{
		composed: x.internComposed(last.composed, composes),
		required: x.internRequired(last.required, requires),
	}
}

func (x *index) internComposed(last []entryID, composes []Reference) []entryID {
	if len(composes) == 0 {
		return nil
	}
	next := make([]entryID, len(composes))
	for i := range composes {
		e, rest, ok := follow(last, func(e entryID) bool { return x.is(e, &composes[i]) })
		if !ok {
			e = x.intern(&composes[i])
			rest = after(last, e)
		}
		next[i], last = e, rest
	}
	return next
}

func (x *index) internRequired(last []requirement, requires []Requirement) []requirement {
	if len(requires) == 0 {
		return nil
	}
	next := make([]requirement, len(requires))
	for i := range requires {
		q, rest, ok := follow(last, func(q requirement) bool { return x.isRequirement(q, &requires[i]) })
		if ok {
			x.again(q)
		} else {
			q = x.internRequirement(&requires[i])
			rest = after(last, q)
		}
		next[i], last = q, rest
	}
	return next
}

// follow returns the first of last that is the one looked for, and what comes
// after it. It looks at two: one that was taken out, added or changed doesn't keep
// those that come after it from being recognised.
func follow[N any](last []N, is func(N) bool) (one N, rest []N, ok bool) {
	for i := range last[:min(2, len(last))] {
		if is(last[i]) {
			return last[i], last[i+1:], true
		}
	}
	return one, last, false
}

// after returns what comes after the one in last or, if it isn't near, last.
func after[N comparable](last []N, one N) []N {
	const near = 8 // or a record of which nothing stays would be searched for each of its references
	return last[slices.Index(last[:min(near, len(last))], one)+1:]
}

// isRun reports whether internRun would return the same.
func (x *index) isRun(r *run, composes []Reference, requires []Requirement) bool {
	if len(r.composed) != len(composes) || len(r.required) != len(requires) {
		return false
	}
	for i := range composes {
		if !x.is(r.composed[i], &composes[i]) {
			return false
		}
	}
	for i := range requires {
		if !x.isRequirement(r.required[i], &requires[i]) {
			return false
		}
	}
	return true
}

func (x *index) internRequirement(r *Requirement) requirement {
	return requirement{
		ask: ask{
			step:    x.names.hold(r.Step),
			name:    x.names.hold(r.Name),
			subject: x.holdSubject(r.Subject),
			from:    r.From,
		},
		entry: x.intern(&r.Reference),
	}
}

// again holds once more what a requirement says.
func (x *index) again(q requirement) {
	x.names.again(q.step)
	x.names.again(q.name)
	if q.subject != 0 {
		x.kinds.again(q.subject)
	}
}

// holdSubject holds a kind that only Schema requirements have.
func (x *index) holdSubject(gvk schema.GroupVersionKind) kindID {
	if gvk.Empty() {
		return 0
	}
	return x.kinds.hold(gvk)
}

func (x *index) releaseAsk(a ask) {
	x.names.release(a.step)
	x.names.release(a.name)
	if a.subject != 0 {
		x.kinds.release(a.subject)
	}
}

func (x *index) releaseAsks(runs ...run) {
	for _, r := range runs {
		for _, q := range r.required {
			x.releaseAsk(q.ask)
		}
	}
}

func (x *index) subject(a ask) schema.GroupVersionKind {
	if a.subject == 0 {
		return schema.GroupVersionKind{}
	}
	return x.kinds.at(a.subject).gvk
}

func (x *index) isRequirement(q requirement, r *Requirement) bool {
	return q.from == r.From && x.names.get(q.name) == r.Name && x.names.get(q.step) == r.Step &&
		x.subject(q.ask) == r.Subject && x.is(q.entry, &r.Reference)
}

// standing reports whether the last success or the run in progress recorded the
// requirement, and none of its name came after it that would be seeded instead.
// What only an earlier failed run recorded doesn't stand: it goes with the run in
// progress.
func (x *index) standing(rec *record, r *Requirement) bool {
	asked, ok := x.findAsk(r)
	if !ok {
		return false
	}
	runs := rec.runs()
	for i, run := range slices.Backward(runs[:]) {
		for _, q := range slices.Backward(run.required) {
			if !q.sameName(asked) {
				continue
			}
			if i != failed && q.ask == asked && x.is(q.entry, &r.Reference) {
				return true
			}
			if r.From.Seeded() {
				return false
			}
		}
	}
	return false
}

// findAsk returns the ask of the requirement as numbers, if all of it is held.
func (x *index) findAsk(r *Requirement) (ask, bool) {
	a := ask{from: r.From}
	var stepHeld, nameHeld bool
	a.step, stepHeld = x.names.find(r.Step)
	a.name, nameHeld = x.names.find(r.Name)
	if !r.Subject.Empty() {
		a.subject = x.kinds.find(r.Subject)
	}
	return a, stepHeld && nameHeld && (r.Subject.Empty() || a.subject != 0)
}

// seeds returns the latest requirement of each source and name that the step
// recorded, of those that are seeded.
func (x *index) seeds(rec *record, step string) []Requirement {
	latest := map[ask]requirement{}
	id, ok := x.names.find(step)
	for _, run := range rec.runs() {
		for _, q := range run.required {
			if ok && q.step == id && q.from.Seeded() {
				latest[ask{name: q.name, from: q.from}] = q
			}
		}
	}

	seeds := make([]Requirement, 0, len(latest))
	for _, q := range latest {
		seeds = append(seeds, Requirement{
			Step:      step,
			Name:      x.names.get(q.name),
			From:      q.from,
			Reference: x.reference(q.entry),
			Subject:   x.subject(q.ask),
		})
	}
	slices.SortFunc(seeds, func(a, b Requirement) int {
		return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Name, b.Name))
	})
	return seeds
}
