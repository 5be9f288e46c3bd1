// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/crosswatch-io/crosswatch/internal/composer/fakeapi"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

const fieldOwner = "apiextensions.crossplane.io/composed/test"

func intentOf(s *fakeapi.Server, spec object) Intent {
	o := &unstructured.Unstructured{Object: thing("one", spec)}
	o.SetNamespace(namespace)
	return Intent{
		XR: "uid", Object: o, Resource: things, FieldOwner: fieldOwner, Live: s.Get(things, namespace, "one"),
	}
}

func applyTo(t testing.TB, a *Applier, s *fakeapi.Server, spec object) {
	t.Helper()
	if _, _, err := a.Apply(t.Context(), intentOf(s, spec)); err != nil {
		t.Fatal(err)
	}
}

// What API servers do to an intent must not make it differ for ever. After a
// restart, one write is allowed where what is stored is not literally what was
// meant.
func TestApplierSettles(t *testing.T) {
	cases := map[string]struct {
		reason    string
		spec      object
		normalize func(spec object)
		restart   int // writes allowed after a restart
	}{
		"Plain": {
			reason: "What is stored is the intent.",
			spec:   object{"size": int64(3), "ratio": 0.5, "on": true, "name": "x", "deep": object{"er": object{"still": "y"}}},
		},
		"WholeFloat": {
			reason: "A float without fraction is stored as an integer.",
			spec:   object{"size": 3.0},
			normalize: func(spec object) {
				spec["size"] = int64(3)
			},
		},
		"Quantity": {
			reason: "The server spells quantities its own way.",
			spec:   object{"memory": "0.1"},
			normalize: func(spec object) {
				spec["memory"] = "100m"
			},
			restart: 1,
		},
		"E4EmptyString": {
			reason: "An empty string is a value.",
			spec:   object{"label": "", "size": int64(1)},
		},
		"E4EmptyStringDropped": {
			reason:    "Some kinds drop empty strings.",
			spec:      object{"label": "", "size": int64(1)},
			normalize: func(spec object) { delete(spec, "label") },
			restart:   1,
		},
		"E4EmptyMapDropped": {
			reason:    "An empty selector is dropped by the server.",
			spec:      object{"selector": object{}, "size": int64(1)},
			normalize: func(spec object) { delete(spec, "selector") },
		},
		"EmptyListDropped": {
			reason:    "An empty list likewise.",
			spec:      object{"tags": []any{}, "other": []any{}, "size": int64(1)},
			normalize: func(spec object) { delete(spec, "tags"); delete(spec, "other") },
		},
		"NullDropped": {
			reason:    "Null means nothing.",
			spec:      object{"nothing": nil, "size": int64(1)},
			normalize: func(spec object) { delete(spec, "nothing") },
		},
		"Defaulted": {
			reason: "What the server adds beside ours is not ours.",
			spec:   object{"size": int64(1)},
			normalize: func(spec object) {
				spec["policy"] = "Always"
				spec["strategy"] = object{"type": "Rolling"}
			},
		},
		"DefaultedKey": {
			reason: "A port without protocol is the TCP port.",
			spec:   object{"ports": []any{object{"port": int64(80), "name": "web"}}},
			normalize: func(spec object) {
				spec["ports"].([]any)[0].(object)["protocol"] = "TCP"
			},
		},
		"KeyedList": {
			reason: "Items are told apart by their keys.",
			spec: object{"ports": []any{
				object{"port": int64(80), "protocol": "TCP"}, object{"port": int64(80), "protocol": "UDP", "name": "quic"},
			}},
		},
		"Set": {
			reason: "Items of a set are themselves.",
			spec:   object{"tags": []any{"a", "b"}},
		},
		"AtomicList": {
			reason: "An atomic list is one value.",
			spec:   object{"args": []any{"a", "a", object{"b": int64(1)}}},
		},
		"Nothing": {
			reason: "An intent may own nothing at all.",
			spec:   object{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := fakeapi.New()
			s.Normalize = func(o object) {
				if spec, ok := o["spec"].(object); ok && tc.normalize != nil {
					tc.normalize(spec)
				}
			}
			a := NewApplier(s)
			for range 5 {
				applyTo(t, a, s, tc.spec)
			}
			if got := len(s.Writes()); got != 1 {
				t.Errorf("%s Writes: %d, want 1", tc.reason, got)
			}
			a = NewApplier(s)
			for range 5 {
				applyTo(t, a, s, tc.spec)
			}
			if got := len(s.Writes()); got > tc.restart {
				t.Errorf("%s Writes after a restart: %d, want %d", tc.reason, got, tc.restart)
			}
		})
	}
}

func TestApplierCorrects(t *testing.T) {
	spec := object{
		"size": int64(1), "empty": object{}, "tags": []any{"a"}, "selector": object{"app": "x"},
		"ports": []any{object{"port": int64(80), "name": "web"}},
	}
	cases := map[string]struct {
		reason string
		edit   func(spec object)
		want   int
	}{
		"Change": {
			reason: "Somebody changed our field.",
			edit:   func(spec object) { spec["size"] = int64(2) },
			want:   1,
		},
		"Removal": {
			reason: "Somebody removed our field.",
			edit:   func(spec object) { delete(spec, "size") },
			want:   1,
		},
		"RemovedItem": {
			reason: "Somebody removed our item of a set.",
			edit:   func(spec object) { spec["tags"] = []any{} },
			want:   1,
		},
		"ChangedItem": {
			reason: "Somebody changed a field of our item.",
			edit:   func(spec object) { spec["ports"].([]any)[0].(object)["name"] = "other" },
			want:   1,
		},
		"IntoAtomic": {
			reason: "Somebody added to a map that is ours as a whole.",
			edit:   func(spec object) { spec["selector"].(object)["tier"] = "y" },
			want:   1,
		},
		"Beside": {
			reason: "What others set beside ours is theirs.",
			edit:   func(spec object) { spec["other"] = "theirs" },
		},
		"IntoEmpty": {
			reason: "What others put into our empty map is theirs.",
			edit:   func(spec object) { spec["empty"].(object)["theirs"] = int64(1) },
		},
		"ItemBeside": {
			reason: "So are items that others add.",
			edit: func(spec object) {
				spec["tags"] = []any{"a", "theirs"}
				spec["ports"] = append(listOf(spec, "ports"), object{"port": int64(81), "protocol": "TCP"})
			},
		},
	}
	for name, tc := range cases {
		for _, restart := range []bool{false, true} {
			t.Run(name+map[bool]string{true: "AfterRestart"}[restart], func(t *testing.T) {
				s := fakeapi.New()
				a := NewApplier(s)
				applyTo(t, a, s, spec)
				s.Writes()
				s.Edit(things, s.Get(things, namespace, "one"), "someone", func(o object) { tc.edit(specOf(o)) })
				if restart {
					a = NewApplier(s)
				}
				for range 3 {
					applyTo(t, a, s, spec)
				}
				if got := len(s.Writes()); got != tc.want {
					t.Errorf("%s Writes: %d, want %d", tc.reason, got, tc.want)
				}
				set, _ := ownEntry(s.Get(things, namespace, "one"), fieldOwner, "")
				if !covers(set, withoutIdentity(intentOf(s, spec).Object.Object), s.Get(things, namespace, "one").Object) {
					t.Errorf("%s It is not as intended: %v", tc.reason, s.Get(things, namespace, "one").Object["spec"])
				}
			})
		}
	}
}

// The order of our items is part of what we want: that of init containers says
// which comes first. That of others' items among them is not.
func TestApplierKeepsTheOrder(t *testing.T) {
	web, admin := object{"port": int64(80), "protocol": "TCP"}, object{"port": int64(81), "protocol": "TCP"}
	spec := func(tags, ports []any) object { return object{"tags": tags, "ports": ports} }
	wanted := spec([]any{"a", "b"}, []any{web, admin})
	cases := map[string]struct {
		reason string
		before object
		edit   func(spec object)
		want   int
	}{
		"SwappedItems": {
			reason: "We want other places for our items.", before: spec([]any{"a", "b"}, []any{admin, web}), want: 1,
		},
		"SwappedSet": {
			reason: "We want another order of our set.", before: spec([]any{"b", "a"}, []any{web, admin}), want: 1,
		},
		"DriftOfItems": {
			reason: "Somebody swapped our items.", before: wanted,
			edit: func(spec object) { slices.Reverse(listOf(spec, "ports")) }, want: 1,
		},
		"DriftOfSet": {
			reason: "Somebody reordered our set.", before: wanted,
			edit: func(spec object) { slices.Reverse(listOf(spec, "tags")) }, want: 1,
		},
		"Between": {
			reason: "Others have items before and between ours.", before: wanted,
			edit: func(spec object) {
				spec["tags"] = []any{"0", "a", "aa", "b"}
				spec["ports"] = []any{object{"port": int64(1), "protocol": "TCP"}, web, object{"port": int64(2), "protocol": "TCP"}, admin}
			},
		},
	}
	for name, tc := range cases {
		for _, restart := range []bool{false, true} {
			t.Run(name+map[bool]string{true: "AfterRestart"}[restart], func(t *testing.T) {
				s := fakeapi.New()
				a := NewApplier(s)
				applyTo(t, a, s, tc.before)
				if tc.edit != nil {
					s.Edit(things, s.Get(things, namespace, "one"), "someone", func(o object) { tc.edit(specOf(o)) })
				}
				if restart {
					a = NewApplier(s)
				}
				s.Writes()
				for range 3 {
					applyTo(t, a, s, wanted)
				}
				if got := len(s.Writes()); got != tc.want {
					t.Errorf("%s Writes: %d, want %d", tc.reason, got, tc.want)
				}
				owned := Owned(s.Get(things, namespace, "one"), fieldOwner, "")
				if diff := cmp.Diff(object{"spec": wanted}, owned); diff != "" {
					t.Errorf("%s Owned (-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	}
}

func TestApplierEmptiesAList(t *testing.T) {
	s := fakeapi.New()
	a := NewApplier(s)
	applyTo(t, a, s, object{"args": []any{"a"}})
	s.Writes()
	for range 3 {
		applyTo(t, a, s, object{"args": []any{}})
	}
	if args := listOf(specOf(s.Get(things, namespace, "one").Object), "args"); len(args) > 0 || len(s.Writes()) != 1 {
		t.Errorf("the list has %v", args)
	}
}

func TestApplierIgnoresAnInformerThatIsBehind(t *testing.T) {
	s := fakeapi.New()
	a := NewApplier(s)
	applyTo(t, a, s, object{"size": int64(1)})
	old := s.Get(things, namespace, "one")
	applyTo(t, a, s, object{"size": int64(2)})
	s.Writes()

	in := intentOf(s, object{"size": int64(2)})
	in.Live = old
	if _, sent, err := a.Apply(t.Context(), in); sent || err != nil {
		t.Errorf("sent %v, error %v", sent, err)
	}
	in = intentOf(s, object{"size": int64(1)})
	in.Live = old
	if _, sent, err := a.Apply(t.Context(), in); !sent || err != nil {
		t.Errorf("going back must not be taken for done: sent %v, error %v", sent, err)
	}
}

func TestApplierForgets(t *testing.T) {
	s := fakeapi.New()
	a := NewApplier(s)
	applyTo(t, a, s, object{"size": int64(1)})
	a.forgetObject(intentOf(s, object{}))
	if got := len(a.memory.byXR["uid"]); got != 0 {
		t.Errorf("%d records of a deleted object", got)
	}
	applyTo(t, a, s, object{"size": int64(2)})
	a.Forget("uid")
	if got := len(a.memory.byXR); got != 0 {
		t.Errorf("%d XRs are remembered", got)
	}
}

// Whatever is applied: applying it again is known to do nothing, with memory or
// without, and what is owned is what was applied.
func TestApplierProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := fakeapi.New()
		a := NewApplier(s)
		specs := rapid.SliceOfN(specs(), 1, 4).Draw(rt, "specs")
		for _, spec := range specs {
			applyTo(t, a, s, spec)
			s.Writes()
			applyTo(t, a, s, spec)
			applyTo(t, NewApplier(s), s, spec)
			if writes := s.Writes(); len(writes) > 0 {
				rt.Fatalf("applying %v again wrote", spec)
			}
			owned := Owned(s.Get(things, namespace, "one"), fieldOwner, "")
			if !equivalent(owned["spec"], spec) {
				rt.Fatalf("owned %v, applied %v", owned["spec"], spec)
			}
		}
	})
}

func specs() *rapid.Generator[object] {
	scalar := rapid.OneOf(
		rapid.Map(rapid.Int64Range(-5, 5), func(n int64) any { return n }),
		rapid.Map(rapid.SampledFrom([]string{"", "x", "y"}), func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
	)
	leaf := rapid.OneOf(scalar, rapid.Map(rapid.SliceOfN(scalar, 1, 3), func(l []any) any { return l }))
	keys := rapid.SampledFrom([]string{"a", "b", "c"})
	inner := rapid.Map(rapid.MapOfN(keys, leaf, 1, 3), func(m object) any { return m })
	plain := rapid.MapOfN(keys, rapid.OneOf(leaf, inner), 1, 3)
	return rapid.Custom(func(t *rapid.T) object {
		spec := plain.Draw(t, "plain")
		var tags, ports []any
		for _, tag := range rapid.SliceOfNDistinct(keys, 0, 3, rapid.ID[string]).Draw(t, "tags") {
			tags = append(tags, tag)
		}
		for _, port := range rapid.SliceOfNDistinct(rapid.Int64Range(1, 3), 0, 3, rapid.ID[int64]).Draw(t, "ports") {
			ports = append(ports, object{"port": port, "protocol": "UDP", "more": leaf.Draw(t, "more")})
		}
		if len(tags) > 0 {
			spec["tags"] = tags
		}
		if len(ports) > 0 {
			spec["ports"] = ports
		}
		return spec
	})
}

func specOf(o object) object {
	spec, _ := o["spec"].(object)
	return spec
}

func listOf(o object, field string) []any {
	list, _ := o[field].([]any)
	return list
}

func TestFieldOwnersDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []schema.GroupKind{{Group: "a.org", Kind: "X"}, {Group: "a.org", Kind: "Y"}, {Group: "b.org", Kind: "X"}} {
		for _, name := range []types.NamespacedName{
			{Name: "n"}, {Namespace: "n", Name: "n"}, {Namespace: "n", Name: "m"}, {Namespace: "m", Name: "n"},
		} {
			owner := FieldOwnerOf(kind, name)
			if seen[owner] || len(owner) > 128 {
				t.Errorf("field owner %q of %v %v", owner, kind, name)
			}
			seen[owner] = true
		}
	}
}

func TestOwned(t *testing.T) {
	s := fakeapi.New()
	a := NewApplier(s)
	spec := object{
		"size": int64(1), "tags": []any{"a"}, "ports": []any{object{"port": int64(80), "protocol": "UDP", "name": "q"}},
	}
	applyTo(t, a, s, spec)
	s.Edit(things, s.Get(things, namespace, "one"), "someone", func(o object) {
		theirs := specOf(o)
		theirs["theirs"] = true
		theirs["tags"] = []any{"theirs", "a"}
		theirs["ports"] = append([]any{object{"port": int64(1), "protocol": "TCP"}}, listOf(theirs, "ports")...)
	})
	got := Owned(s.Get(things, namespace, "one"), fieldOwner, "")
	if diff := cmp.Diff(object{"spec": spec}, got); diff != "" {
		t.Errorf("owned (-want +got):\n%s", diff)
	}
	later := s.Get(things, namespace, "one")
	later.SetAPIVersion("example.org/v2")
	if diff := cmp.Diff(object{"spec": spec}, Owned(later, fieldOwner, "")); diff != "" {
		t.Errorf("owned in a later version (-want +got):\n%s", diff)
	}
	if got := Owned(s.Get(things, namespace, "one"), "somebody-else", ""); len(got) != 0 {
		t.Errorf("owned by nobody: %v", got)
	}
}

func answerUntil(expires time.Time) *function.Answer { return &function.Answer{Expires: expires} }
