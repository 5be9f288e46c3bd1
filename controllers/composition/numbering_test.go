// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

func rooms(change ...func(*v1.Composition)) *v1.Composition {
	c := &v1.Composition{
		ObjectMeta: metav1.ObjectMeta{Name: "rooms", UID: "composition-uid"},
		Spec: v1.CompositionSpec{
			CompositeTypeRef: v1.TypeReference{APIVersion: "example.org/v1", Kind: "Room"},
			Mode:             v1.CompositionModePipeline,
			Pipeline:         []v1.PipelineStep{{Step: "walls", FunctionRef: v1.FunctionReference{Name: "walls"}}},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func hashOf(t *testing.T, c *v1.Composition) string {
	t.Helper()
	hash, err := Hash(c)
	if err != nil {
		t.Fatalf("Hash: %v", err)
	}
	return hash
}

func TestHashDependsOnContentOnly(t *testing.T) {
	base := hashOf(t, rooms())
	same := map[string]func(*v1.Composition){
		"Nothing":         func(*v1.Composition) {},
		"Generation":      func(c *v1.Composition) { c.Generation = 7 },
		"ResourceVersion": func(c *v1.Composition) { c.ResourceVersion = "7" },
		"Name":            func(c *v1.Composition) { c.Name = "other" },
	}
	for name, change := range same {
		t.Run("Same/"+name, func(t *testing.T) {
			if got := hashOf(t, rooms(change)); got != base {
				t.Errorf("want the hash %s, got %s", base, got)
			}
		})
	}
	different := map[string]func(*v1.Composition){
		"Label":      func(c *v1.Composition) { c.Labels = map[string]string{"a": "b"} },
		"Annotation": func(c *v1.Composition) { c.Annotations = map[string]string{"a": "b"} },
		"Spec":       func(c *v1.Composition) { c.Spec.Pipeline[0].Step = "floor" },
	}
	for name, change := range different {
		t.Run("Different/"+name, func(t *testing.T) {
			if got := hashOf(t, rooms(change)); got == base {
				t.Errorf("want another hash than %s", base)
			}
		})
	}
}

func TestSnapshot(t *testing.T) {
	c := rooms(func(c *v1.Composition) {
		c.Labels = map[string]string{"tier": "1", v1.LabelCompositionName: "not this"}
		c.Annotations = map[string]string{"note": "x"}
	})
	hash := hashOf(t, c)
	got := Snapshot(c, hash, 4)

	if want := "rooms-" + hash[:7]; got.Name != want {
		t.Errorf("name: want %s, got %s", want, got.Name)
	}
	wantLabels := map[string]string{"tier": "1", v1.LabelCompositionName: "rooms", v1.LabelCompositionHash: hash[:63]}
	if diff := cmp.Diff(wantLabels, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.Annotations, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(got, c) {
		t.Error("the Composition does not control its revision")
	}
	if diff := cmp.Diff(v1.SpecOf(c.Spec, 4), got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestPlanFor(t *testing.T) {
	c := rooms()
	hash := hashOf(t, c)
	revision := func(name, hash string, number int64, owner types.UID) v1.CompositionRevision {
		r := v1.CompositionRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelCompositionHash: hashLabel(hash)}},
			Spec:       v1.CompositionRevisionSpec{Revision: number},
		}
		if owner != "" {
			r.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}
		}
		return r
	}
	other := hashOf(t, rooms(func(c *v1.Composition) { c.Spec.Pipeline = nil }))

	type outcome struct {
		Create bool
		Update string
		Number int64
	}
	cases := map[string]struct {
		reason    string
		revisions []v1.CompositionRevision
		want      outcome
	}{
		"First": {
			reason: "a Composition without revisions gets its first",
			want:   outcome{Create: true, Number: 1},
		},
		"Next": {
			reason:    "new content gets the next number",
			revisions: []v1.CompositionRevision{revision("a", other, 3, c.UID), revision("b", other, 1, c.UID)},
			want:      outcome{Create: true, Number: 4},
		},
		"Current": {
			reason:    "content that is the newest already needs nothing",
			revisions: []v1.CompositionRevision{revision("a", other, 1, c.UID), revision("b", hash, 2, c.UID)},
		},
		"Return": {
			reason:    "a return to earlier content raises that revision again",
			revisions: []v1.CompositionRevision{revision("a", hash, 1, c.UID), revision("b", other, 2, c.UID)},
			want:      outcome{Update: "a", Number: 3},
		},
		"Orphan": {
			reason:    "a revision that nobody controls is taken over as it is",
			revisions: []v1.CompositionRevision{revision("a", hash, 2, "")},
			want:      outcome{Update: "a", Number: 2},
		},
		"Foreign": {
			reason:    "a revision that another Composition controls is not used, but its number is",
			revisions: []v1.CompositionRevision{revision("a", hash, 2, "other-uid")},
			want:      outcome{Create: true, Number: 3},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planFor(c, hash, tc.revisions)
			got := outcome{Create: p.create, Number: p.number}
			if p.update != nil {
				got.Update = p.update.Name
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if p.isNothing() != (tc.want == outcome{}) {
				t.Errorf("isNothing: got %t", p.isNothing())
			}
		})
	}
}
