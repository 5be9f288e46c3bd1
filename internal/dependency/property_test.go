// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

// The alphabets are small so that random operations often meet each other.
var (
	someKinds      = []schema.GroupVersionKind{clusters, replicas, secrets}
	someNamespaces = []string{"", "a", "b"}
	someNames      = []string{"x", "y"}
	someXRs        = []XR{
		{Name: "x"}, {Name: "y"}, {Namespace: "a", Name: "x"}, {Namespace: "a", Name: "y"},
		{Namespace: "b", Name: "x"}, {Namespace: "b", Name: "y"}, {Namespace: "c", Name: "a"}, {Namespace: "c", Name: "p"},
	}
	someSteps  = []string{"one", "two"}
	someLabels = []map[string]string{
		nil,
		{},
		{"p": ""},
		{"p": "1"},
		{"q": "1"},
		{"q": ""},
		{"p": "1", "q": "1"},
		{"p": "1", "q": ""},
		{"p": "", "q": "1"},
		{"p": "1", "q": "1", "r": "1"},
	}
)

// A source decides: a property test's generator, or the bytes of a fuzz test.
type source interface {
	// upTo returns a number that is not negative and less than n.
	upTo(n int) int
}

type drawn struct{ *rapid.T }

func (d drawn) upTo(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "choice") }

type bytes struct{ left []byte }

// upTo takes a byte, or zero when there is none left.
func (b *bytes) upTo(n int) int {
	if len(b.left) == 0 {
		return 0
	}
	next := b.left[0]
	b.left = b.left[1:]
	return int(next) % n
}

func oneOf[T any](from source, all []T) T { return all[from.upTo(len(all))] }

// sliceOf returns at most four.
func sliceOf[T any](from source, one func(source) T) []T {
	out := make([]T, from.upTo(5))
	for i := range out {
		out[i] = one(from)
	}
	return out
}

func anyReference(from source) Reference {
	return Reference{
		GVK:       oneOf(from, someKinds),
		Namespace: oneOf(from, someNamespaces),
		Name:      oneOf(from, []string{"", "", "x", "y"}),
		Labels:    maps.Clone(oneOf(from, someLabels)),
	}
}

func anyRequirement(from source) Requirement {
	return Requirement{
		Step:      oneOf(from, someSteps),
		Name:      oneOf(from, someNames),
		From:      Source(from.upTo(int(Shown) + 1)),
		Reference: anyReference(from),
		Subject:   oneOf(from, append(someKinds, schema.GroupVersionKind{})),
	}
}

func anyObject(from source) metav1.Object {
	// No reference is to the name "z".
	return object(oneOf(from, someNamespaces), oneOf(from, []string{"x", "y", "z"}), oneOf(from, someLabels))
}

// A pairing is a tracker and the model of it, to which the same is done.
type pairing struct {
	fataler
	tracker *Tracker
	spec    *model

	// What most operations are about, so that the same comes again and again.
	usual []Requirement
}

func newPairing(t fataler, from source) pairing {
	p := pairing{fataler: t, tracker: NewTracker(), spec: &model{}}
	p.tracker.batch = 1 + from.upTo(5)
	for range 2 + from.upTo(15) {
		p.usual = append(p.usual, anyRequirement(from))
	}
	return p
}

func (p pairing) requirement(from source) Requirement {
	if from.upTo(8) == 0 {
		return anyRequirement(from)
	}
	return oneOf(from, p.usual)
}

func (p pairing) reference(from source) Reference {
	return p.requirement(from).Reference
}

// An operation is a method of the tracker, with arguments from a source. What it
// returns, if anything, is compared with the model's answer.
type operation func(p pairing, from source)

var operations = []operation{
	pairing.require, pairing.require, pairing.requireAgain, pairing.depend,
	pairing.track, pairing.trackAgain, pairing.fail, pairing.forget,
	pairing.requirements, pairing.dependants, pairing.dependantsOfKind, pairing.hasKind, pairing.gvks, pairing.stats,
}

func (p pairing) require(from source) {
	xr, r := oneOf(from, someXRs), p.requirement(from)
	p.tracker.Require(xr, r)
	p.spec.Require(xr, r)
}

// requireAgain is what a run of an XR does that was recorded before.
func (p pairing) requireAgain(from source) {
	xr := oneOf(from, someXRs)
	_, requires := p.spec.succeededOf(xr)
	if len(requires) == 0 {
		return
	}
	r := oneOf(from, requires)
	p.tracker.Require(xr, r)
	p.spec.Require(xr, r)
}

func (p pairing) depend(from source) {
	xr, r := oneOf(from, someXRs), p.reference(from)
	p.tracker.Depend(xr, r)
	p.spec.Depend(xr, r)
}

func (p pairing) track(from source) {
	xr, composes, requires := oneOf(from, someXRs), sliceOf(from, p.reference), sliceOf(from, p.requirement)
	p.tracker.Track(xr, composes, requires)
	p.spec.Track(xr, composes, requires)
}

// trackAgain is what most runs end with: what the last success left, or nearly.
func (p pairing) trackAgain(from source) {
	xr := oneOf(from, someXRs)
	composes, requires := p.spec.succeededOf(xr)
	if from.upTo(2) == 0 {
		composes = slices.Insert(composes, from.upTo(len(composes)+1), p.reference(from))
	}
	if len(requires) > 0 && from.upTo(2) == 0 {
		i := from.upTo(len(requires))
		requires = slices.Delete(requires, i, i+1)
	}
	if len(requires) > 0 && from.upTo(4) == 0 {
		requires[from.upTo(len(requires))].Subject = oneOf(from, someKinds)
	}
	p.tracker.Track(xr, composes, requires)
	p.spec.Track(xr, composes, requires)
}

func (p pairing) fail(from source) {
	xr := oneOf(from, someXRs)
	p.tracker.Fail(xr)
	p.spec.Fail(xr)
}

func (p pairing) forget(from source) {
	xr := oneOf(from, someXRs)
	p.tracker.Forget(xr)
	p.spec.Forget(xr)
}

func (p pairing) requirements(from source) {
	xr, step := oneOf(from, someXRs), oneOf(from, someSteps)
	same(p, "Requirements", p.spec.Requirements(xr, step), p.tracker.Requirements(xr, step))
}

func (p pairing) dependants(from source) {
	gvk, obj := oneOf(from, someKinds), anyObject(from)
	same(p, "Dependants", p.spec.Dependants(gvk, obj), sorted(p.tracker.Dependants(nil, gvk, obj)))
}

func (p pairing) dependantsOfKind(from source) {
	gvk := oneOf(from, someKinds)
	same(p, "DependantsOfKind", p.spec.DependantsOfKind(gvk), sorted(p.tracker.DependantsOfKind(nil, gvk)))
}

func (p pairing) hasKind(from source) {
	gvk := oneOf(from, someKinds)
	same(p, "HasKind", slices.Contains(p.spec.GVKs(), gvk), p.tracker.HasKind(gvk))
}

func (p pairing) gvks(source) {
	same(p, "GVKs", p.spec.GVKs(), p.tracker.GVKs())
}

func (p pairing) stats(source) {
	same(p, "Stats", p.spec.Stats(), countsOf(p.tracker))
	sameTallies(p, p.tracker)
}

// end asks everything that can be asked, and forgets every XR.
func (p pairing) end() {
	p.gvks(nil)
	p.stats(nil)
	for _, xr := range someXRs {
		for _, step := range someSteps {
			same(p, "Requirements", p.spec.Requirements(xr, step), p.tracker.Requirements(xr, step))
		}
	}
	for _, gvk := range someKinds {
		for obj := range someObjects {
			same(p, "Dependants", p.spec.Dependants(gvk, obj), sorted(p.tracker.Dependants(nil, gvk, obj)))
		}
	}

	last := XR{Name: "the last one"} // with which the tracker would be as new
	p.tracker.Track(last, nil, nil)
	for _, xr := range someXRs {
		p.tracker.Forget(xr)
	}
	holdsNothingBut(p, p.tracker, 1)
	p.tracker.Forget(last)
	nothingLeft(p, p.tracker)
}

func TestTrackerAgreesWithModel(t *testing.T) {
	const enough = 100_000
	for done := 0; done < enough && !t.Failed(); {
		rapid.Check(t, func(t *rapid.T) {
			p := newPairing(t, drawn{t})
			for range rapid.IntRange(1, 100).Draw(t, "operations") {
				oneOf(drawn{t}, operations)(p, drawn{t})
				done++
			}
			p.end()
		})
	}
}

// FuzzTrackerAgreesWithModel takes a byte for each choice: the size of a batch and
// what is usual, then operations and their arguments.
func FuzzTrackerAgreesWithModel(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 2, 0, 0, 0, 3, 7, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, choices []byte) {
		from := &bytes{choices}
		p := newPairing(t, from)
		for len(from.left) > 0 {
			oneOf(from, operations)(p, from)
		}
		p.end()
	})
}

// countsOf returns the tracker's Stats in a fixed order, without the estimate.
func countsOf(tracker *Tracker) Stats {
	s := tracker.Stats()
	s.Bytes = 0
	slices.SortFunc(s.Kinds, func(a, b KindStats) int { return CompareGVKs(a.GVK, b.GVK) })
	return s
}

// someObjects yields an object of each namespace, name and labels there are.
func someObjects(yield func(metav1.Object) bool) {
	for _, namespace := range someNamespaces {
		for _, name := range []string{"x", "z"} {
			for _, labels := range someLabels {
				if !yield(object(namespace, name, labels)) {
					return
				}
			}
		}
	}
}

func sorted(xrs []XR) []XR {
	slices.SortFunc(xrs, compareXRs)
	return xrs
}

// fataler is what *testing.T and *rapid.T have in common here.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func same(t fataler, what string, want, got any) {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return // saves most of the time of a property test
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s: -want +got:\n%s", what, diff)
	}
}

func nothingLeft(t fataler, tracker *Tracker) {
	t.Helper()
	same(t, "GVKs", []schema.GroupVersionKind(nil), tracker.GVKs())
	same(t, "counts", Stats{}, countsOf(tracker))
	same(t, "bytes", NewTracker().Stats().Bytes, tracker.Stats().Bytes)
	holdsNothingBut(t, tracker, 0)
}

// holdsNothingBut looks into each table for what was not released.
func holdsNothingBut(t fataler, tracker *Tracker, records int) {
	t.Helper()
	x := &tracker.index
	for what, held := range map[string]int{
		"names":      x.names.table.held,
		"labels":     x.labels.table.held,
		"kinds":      x.kinds.table.held,
		"live kinds": len(x.kinds.stats),
		"entries":    x.entries.table.held,
		"holders":    x.entries.holders.inSets,
		"dependants": x.kinds.dependants.inSets,
		"in pairs":   x.pairs.filed.inSets,
		"pairs":      x.pairs.table.held,
		"filed":      len(x.pairs.under),
	} {
		same(t, what, 0, held)
	}
	same(t, "records", records, tracker.records.table.held)
	sameTallies(t, tracker)
}

// sameTallies adds up from scratch what is counted as it comes and goes.
func sameTallies(t fataler, tracker *Tracker) {
	t.Helper()
	tally := func(texts *texts) (bytes int) {
		for id := range texts.table.rows.len {
			bytes += allocated(len(texts.get(textID(id))))
		}
		return bytes
	}
	x := &tracker.index
	same(t, "bytes of names", tally(&x.names), x.names.bytes)
	same(t, "bytes of labels", tally(&x.labels), x.labels.bytes)

	bytes := 0
	for id := range tracker.records.table.rows.len {
		rec := tracker.records.at(recordID(id))
		bytes += allocated(len(rec.xr.Name)) + rec.bytes()
	}
	same(t, "bytes of records", bytes, tracker.records.bytes)

	bytes = 0
	for id := range x.kinds.table.rows.len {
		bytes += kindTextBytes(x.kinds.at(kindID(id)).gvk)
	}
	same(t, "bytes of kinds", bytes, x.kinds.bytes)

	same(t, "holders", numbersIn(&x.entries.holders), x.entries.holders.inSets)
	same(t, "dependants", numbersIn(&x.kinds.dependants), x.kinds.dependants.inSets)
	same(t, "in pairs", numbersIn(&x.pairs.filed), x.pairs.filed.inSets)
}

func numbersIn[N ~uint32](g *groups[N]) (n int) {
	for which := range g.sets.len {
		n += g.sets.at(which).len()
	}
	return n
}
