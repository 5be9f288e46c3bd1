// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

const stored = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  resourceVersion: "7"
  generation: 2
  managedFields: [{manager: me}]
data: {k: v}
`

func TestView(t *testing.T) {
	u := decode(t, stored)
	before := u.DeepCopy()
	view := View(u)

	same(t, "view", map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "a", "generation": int64(2)},
		"data":       map[string]any{"k": "v"},
	}, view)
	view["metadata"].(map[string]any)["name"] = "b"
	view["data"] = nil
	same(t, "the object after its view", before.Object, u.Object)
}

func TestViewWithoutMetadata(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"Nil":      nil,
		"Empty":    {},
		"NoMap":    {"metadata": "x"},
		"NoFields": {"metadata": map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "view", object, View(&unstructured.Unstructured{Object: object}))
		})
	}
}

func TestWakeHash(t *testing.T) {
	changed := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := decode(t, stored)
		change(u)
		return u
	}
	cases := map[string]struct {
		reason string
		other  *unstructured.Unstructured
		same   bool
	}{
		"Copy": {
			reason: "equal objects hash alike", same: true,
			other: changed(func(*unstructured.Unstructured) {}),
		},
		"ResourceVersion": {
			reason: "the resource version is not seen", same: true,
			other: changed(func(u *unstructured.Unstructured) { u.SetResourceVersion("8") }),
		},
		"ManagedFields": {
			reason: "managed fields are not seen", same: true,
			other: changed(func(u *unstructured.Unstructured) { u.SetManagedFields(nil) }),
		},
		"Annotation": {
			reason: "annotations are seen",
			other:  changed(func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": ""}) }),
		},
		"Content": {
			reason: "content is seen",
			other:  changed(func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"k": "w"} }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.reason, tc.same, WakeHash(decode(t, stored)) == WakeHash(tc.other))
		})
	}
}

// Values that are easily confused hash differently.
func TestHashTellsApart(t *testing.T) {
	values := []any{
		nil, false, true, int64(0), int64(1), 0.0, 1.0, "", "0", "1", "true", "null", int32(1), []string{"a"},
		[]any{}, []any{nil}, []any{""}, []any{[]any{}}, []any{"a", "b"}, []any{"b", "a"}, []any{"ab"}, []any{"ab", ""}, []any{[]any{"a"}, "b"},
		map[string]any{}, map[string]any{"": nil}, map[string]any{"a": nil}, map[string]any{"a": map[string]any{}},
		map[string]any{"a": "b"}, map[string]any{"b": "a"}, map[string]any{"a": "b", "c": "d"}, map[string]any{"a": "d", "c": "b"},
	}
	seen := map[uint64]any{}
	for _, v := range values {
		h := WakeHash(&unstructured.Unstructured{Object: map[string]any{"v": v}})
		if twin, ok := seen[h]; ok {
			t.Errorf("%#v and %#v hash alike", v, twin)
		}
		seen[h] = v
	}
}

func TestHashIsThatOfTheContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawTree(t, 3), drawTree(t, 3)
		hash := func(v any) uint64 {
			return WakeHash(&unstructured.Unstructured{Object: map[string]any{"v": v}})
		}
		if hash(a) != hash(runtime.DeepCopyJSONValue(a)) {
			t.Fatalf("a copy of %#v hashes differently", a)
		}
		if reflect.DeepEqual(a, b) != (hash(a) == hash(b)) {
			t.Fatalf("%#v and %#v: equality of hashes is not that of content", a, b)
		}
	})
}

// drawTree returns a JSON-like value of few different contents, so that equal
// ones are drawn as well.
func drawTree(t *rapid.T, depth int) any {
	leaves := []any{nil, true, int64(1), 1.0, "", "a"}
	shape := rapid.IntRange(0, 5).Draw(t, "shape")
	if depth == 0 || shape < 3 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	n := rapid.IntRange(0, 3).Draw(t, "size")
	if shape == 3 {
		items := make([]any, 0, n)
		for range n {
			items = append(items, drawTree(t, depth-1))
		}
		return items
	}
	fields := map[string]any{}
	for i := range n {
		fields[fmt.Sprint("k", i)] = drawTree(t, depth-1)
	}
	return fields
}

func BenchmarkWakeHash(b *testing.B) {
	data := map[string]any{}
	for i := range 50 {
		data[fmt.Sprintf("key-%02d", i)] = map[string]any{"value": int64(i), "list": []any{"a", "b", true, nil}}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": data}}
	b.ReportAllocs()
	for b.Loop() {
		WakeHash(u)
	}
}

func TestWakeHashIgnoresHowOurConditionsAreWorded(t *testing.T) {
	object := func(kind, status, reason, message string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": message,
			}}},
		}}
	}
	base := object("Synced", "False", "ReconcileError", "a: wrong, b: wrong")
	cases := map[string]struct {
		other *unstructured.Unstructured
		same  bool
	}{
		"another wording":                 {object("Synced", "False", "ReconcileError", "b: wrong, a: wrong"), true},
		"another status":                  {object("Synced", "True", "ReconcileError", "a: wrong, b: wrong"), false},
		"another reason":                  {object("Synced", "False", "WaitingForWatch", "a: wrong, b: wrong"), false},
		"a condition of somebody else's":  {object("Custom", "False", "ReconcileError", "a: wrong, b: wrong"), false},
		"conditions that are not objects": {&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{"odd"}}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := WakeHash(base) == WakeHash(tc.other); got != tc.same {
				t.Errorf("the hashes are equal: %v, want %v", got, tc.same)
			}
		})
	}
	worded := object("Custom", "True", "Fine", "one")
	if WakeHash(worded) == WakeHash(object("Custom", "True", "Fine", "two")) {
		t.Error("the wording of a condition that is not ours does not count")
	}
	if got := View(base)["status"]; !reflect.DeepEqual(got, base.Object["status"]) {
		t.Errorf("the view itself lost the wording: %v", got)
	}
}
