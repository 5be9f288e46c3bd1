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
	someXRs        = []XR{{Name: "x"}, {Namespace: "a", Name: "x"}, {Namespace: "a", Name: "y"}, {Namespace: "b", Name: "x"}}
	someSteps      = []string{"one", "two"}
	someLabels     = []map[string]string{
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

func TestTrackerAgreesWithModel(t *testing.T) {
	rapid.Check(t, agreesWithModel)
}

func FuzzTrackerAgreesWithModel(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(agreesWithModel))
}

// agreesWithModel does the same random operations to a Tracker and to the model,
// compares every answer after each of them, and forgets everything at the end.
func agreesWithModel(t *rapid.T) {
	tracker, spec := NewTracker(), &model{}
	var (
		xr  = rapid.SampledFrom(someXRs)
		ref = rapid.Custom(drawReference)
		req = rapid.Custom(drawRequirement)
	)

	t.Repeat(map[string]func(*rapid.T){
		"": func(t *rapid.T) { compare(t, tracker, spec) },
		"Require": func(t *rapid.T) {
			x, r := xr.Draw(t, "xr"), req.Draw(t, "requirement")
			tracker.Require(x, r)
			spec.Require(x, r)
		},
		"Depend": func(t *rapid.T) {
			x, r := xr.Draw(t, "xr"), ref.Draw(t, "reference")
			tracker.Depend(x, r)
			spec.Depend(x, r)
		},
		"Track": func(t *rapid.T) {
			x := xr.Draw(t, "xr")
			composes := rapid.SliceOfN(ref, 0, 4).Draw(t, "composed")
			requires := rapid.SliceOfN(req, 0, 4).Draw(t, "required")
			tracker.Track(x, composes, requires)
			spec.Track(x, composes, requires)
		},
		"Fail": func(t *rapid.T) {
			x := xr.Draw(t, "xr")
			tracker.Fail(x)
			spec.Fail(x)
		},
		"Forget": func(t *rapid.T) {
			x := xr.Draw(t, "xr")
			tracker.Forget(x)
			spec.Forget(x)
		},
	})

	for _, x := range someXRs {
		tracker.Forget(x)
	}
	nothingLeft(t, tracker)
}

func drawReference(t *rapid.T) Reference {
	return Reference{
		GVK:       rapid.SampledFrom(someKinds).Draw(t, "kind"),
		Namespace: rapid.SampledFrom(someNamespaces).Draw(t, "namespace"),
		Name:      rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "name"),
		Labels:    maps.Clone(rapid.SampledFrom(someLabels).Draw(t, "labels")),
	}
}

func drawRequirement(t *rapid.T) Requirement {
	return Requirement{
		Step:      rapid.SampledFrom(someSteps).Draw(t, "step"),
		Name:      rapid.SampledFrom(someNames).Draw(t, "requirement name"),
		From:      Source(rapid.Uint8Range(0, uint8(Shown)).Draw(t, "source")),
		Reference: drawReference(t),
		Subject:   rapid.SampledFrom(someKinds).Draw(t, "subject"),
	}
}

// compare asks the tracker and the model everything that can be asked.
func compare(t *rapid.T, tracker *Tracker, spec *model) {
	compareKinds(t, tracker, spec)
	for _, xr := range someXRs {
		for _, step := range someSteps {
			same(t, "Requirements", spec.Requirements(xr, step), tracker.Requirements(xr, step))
		}
	}
	for _, gvk := range someKinds {
		for obj := range someObjects {
			same(t, "Dependants", spec.Dependants(gvk, obj), sorted(tracker.Dependants(nil, gvk, obj)))
		}
	}
}

func compareKinds(t *rapid.T, tracker *Tracker, spec *model) {
	same(t, "GVKs", spec.GVKs(), tracker.GVKs())
	same(t, "Stats", spec.Stats(), countsOf(tracker))
	same(t, "Stats.Bytes", recount(tracker), tracker.Stats().Bytes)
	for _, gvk := range someKinds {
		same(t, "HasKind", slices.Contains(spec.GVKs(), gvk), tracker.HasKind(gvk))
		same(t, "DependantsOfKind", spec.DependantsOfKind(gvk), sorted(tracker.DependantsOfKind(nil, gvk)))
	}
}

// countsOf returns the tracker's Stats in a fixed order, without the estimate.
func countsOf(tracker *Tracker) Stats {
	s := tracker.Stats()
	s.Bytes = 0
	slices.SortFunc(s.Kinds, func(a, b KindStats) int { return CompareGVKs(a.GVK, b.GVK) })
	return s
}

// someObjects yields an object of each namespace, name and labels there are, the
// name "z" included, which no reference names.
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
	same(t, "Stats", Stats{}, tracker.Stats())
	same(t, "records", 0, len(tracker.records))
	same(t, "kinds", 0, len(tracker.index.kinds))
}
