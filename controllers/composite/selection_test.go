// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// app returns an XR with these fields under spec.crossplane.
func app(name string, machinery object) xr.XR {
	x := xr.New(&unstructured.Unstructured{Object: object{
		"apiVersion": "example.org/v1", "kind": "App", "spec": object{"crossplane": machinery},
	}}, false)
	x.SetName(name)
	return x
}

func named(name string) object { return object{"name": name} }

func TestFindComposition(t *testing.T) {
	other := composition("other-kind", nil)
	other.Spec.CompositeTypeRef.Kind = "Other"
	all := []v1.Composition{composition("b", map[string]string{"size": "big"}), composition("a", nil), other}
	cases := map[string]struct {
		reason     string
		machinery  object
		definition v1.CompositeResourceDefinitionSpec
		want       string
		fails      bool
	}{
		"Enforced": {
			reason:     "What the kind enforces goes first.",
			machinery:  object{"compositionRef": named("a")},
			definition: v1.CompositeResourceDefinitionSpec{EnforcedCompositionRef: &v1.CompositionReference{Name: "b"}},
			want:       "b",
		},
		"Own": {
			reason:     "The XR's own choice goes before the default.",
			machinery:  object{"compositionRef": named("b")},
			definition: v1.CompositeResourceDefinitionSpec{DefaultCompositionRef: &v1.CompositionReference{Name: "a"}},
			want:       "b",
		},
		"Default": {
			reason:     "Without a selector the default is taken.",
			definition: v1.CompositeResourceDefinitionSpec{DefaultCompositionRef: &v1.CompositionReference{Name: "b"}},
			want:       "b",
		},
		"SelectorBeforeDefault": {
			reason:     "A selector is a choice.",
			machinery:  object{"compositionSelector": object{"matchLabels": object{"size": "big"}}},
			definition: v1.CompositeResourceDefinitionSpec{DefaultCompositionRef: &v1.CompositionReference{Name: "a"}},
			want:       "b",
		},
		"Any":            {reason: "Any that composes the kind will do, always the same.", want: "a"},
		"Missing":        {reason: "What is named must exist.", machinery: object{"compositionRef": named("gone")}, fails: true},
		"OtherKind":      {reason: "It must compose this kind.", machinery: object{"compositionRef": named("other-kind")}, fails: true},
		"NothingMatches": {reason: "A selector may match nothing.", machinery: object{"compositionSelector": object{"matchLabels": object{"size": "huge"}}}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &v1.CompositeResourceDefinition{Spec: tc.definition}
			got, err := findComposition(t.Context(), &catalog{compositions: all}, app("x", tc.machinery), d)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s Got %q, %v", tc.reason, got, err)
			}
		})
	}
}

func TestChooseRevision(t *testing.T) {
	labelled := revision("c", 2)
	labelled.Labels["channel"] = "stable"
	all := []v1.CompositionRevision{revision("c", 1), revision("c", 3), labelled}
	stable := object{"matchLabels": object{"channel": "stable"}}
	cases := map[string]struct {
		reason     string
		machinery  object
		definition v1.CompositeResourceDefinitionSpec
		revisions  []v1.CompositionRevision
		want       string
	}{
		"Newest":   {reason: "By default the newest is followed.", revisions: all, want: "c-3"},
		"Follows":  {reason: "A reference doesn't hold.", machinery: object{"compositionRevisionRef": named("c-1")}, revisions: all, want: "c-3"},
		"Selector": {reason: "The newest that matches.", machinery: object{"compositionRevisionSelector": stable}, revisions: all, want: "c-2"},
		"DefaultSelector": {
			reason:     "The kind may have a selector.",
			definition: v1.CompositeResourceDefinitionSpec{DefaultCompositionRevisionSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"channel": "stable"}}},
			revisions:  all, want: "c-2",
		},
		"Manual": {
			reason:    "The one that is named.",
			machinery: object{"compositionUpdatePolicy": "Manual", "compositionRevisionRef": named("c-1")},
			revisions: all, want: "c-1",
		},
		"ManualByDefault": {
			reason:     "The kind may have a policy.",
			machinery:  object{"compositionRevisionRef": named("c-1")},
			definition: v1.CompositeResourceDefinitionSpec{DefaultCompositionUpdatePolicy: ptr.To(v1.UpdateManual)},
			revisions:  all, want: "c-1",
		},
		"ManualAtFirst": {reason: "The first choice is the newest.", machinery: object{"compositionUpdatePolicy": "Manual"}, revisions: all, want: "c-3"},
		"ManualOfAnother": {
			reason:    "It must belong to the Composition.",
			machinery: object{"compositionUpdatePolicy": "Manual", "compositionRevisionRef": named("d-1")},
			revisions: all,
		},
		"None":           {reason: "There may be none yet."},
		"NothingMatches": {reason: "None may match.", machinery: object{"compositionRevisionSelector": stable}, revisions: all[:1]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := chooseRevision(app("x", tc.machinery), &v1.CompositeResourceDefinition{Spec: tc.definition}, "c", tc.revisions)
			if (got == nil) != (err != nil) {
				t.Fatalf("%s Got %v, %v", tc.reason, got, err)
			}
			if got == nil && tc.want != "" || got != nil && got.Name != tc.want {
				t.Errorf("%s Got %v, %v; want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestUsable(t *testing.T) {
	valid, invalid, unchecked := revision("c", 1), revision("c", 2), revision("c", 3)
	invalid.Status.SetConditions(commonv1.False(commonv1.TypeValidPipeline, commonv1.ReasonMissingCapabilities, "why"))
	unchecked.Status.Conditions = nil
	if err := usable(&valid); err != nil {
		t.Error(err)
	}
	for _, r := range []*v1.CompositionRevision{&invalid, &unchecked} {
		if usable(r) == nil {
			t.Errorf("%s is usable", r.Name)
		}
	}
}

// S3: only those XRs are woken that can use a revision, and don't.
func TestFollowersOf(t *testing.T) {
	synced := func(x xr.XR) xr.XR {
		x.SetConditions(commonv1.True(commonv1.TypeSynced, commonv1.ReasonReconcileSuccess))
		return x
	}
	using := func(composition, revision string) object {
		return object{"compositionRef": named(composition), "compositionRevisionRef": named(revision)}
	}
	manual := using("c", "c-1")
	manual["compositionUpdatePolicy"] = "Manual"
	xrs := []xr.XR{
		synced(app("behind", using("c", "c-1"))),
		synced(app("content", using("c", "c-2"))),
		app("unwell", using("c", "c-2")),
		synced(app("elsewhere", using("d", "d-1"))),
		app("undecided", object{}),
		synced(app("manual", manual)),
	}
	got := FollowersOf(xrs, &v1.CompositeResourceDefinition{}, "c", []v1.CompositionRevision{revision("c", 1), revision("c", 2)})
	want := []types.NamespacedName{{Name: "behind"}, {Name: "unwell"}, {Name: "undecided"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}

func TestUsersOf(t *testing.T) {
	well := app("well", object{"compositionRevisionRef": named("c-1")})
	well.SetConditions(commonv1.True(commonv1.TypeSynced, commonv1.ReasonReconcileSuccess))
	xrs := []xr.XR{well, app("unwell", object{"compositionRevisionRef": named("c-1")}), app("other", object{"compositionRevisionRef": named("d-1")})}
	using := map[string]bool{"c-1": true}
	if diff := cmp.Diff([]types.NamespacedName{{Name: "unwell"}}, UsersOf(xrs, using, true)); diff != "" {
		t.Errorf("woken by health (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]types.NamespacedName{{Name: "well"}, {Name: "unwell"}}, UsersOf(xrs, using, false)); diff != "" {
		t.Errorf("woken by another server (-want +got):\n%s", diff)
	}
}
