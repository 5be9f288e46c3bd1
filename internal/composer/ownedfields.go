// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// fields is a set of fields as managed fields spell it (FieldsV1): a tree whose
// keys lead from a value into its parts. A key without children is a field that
// is owned whole.
//
//	f:<name>   the field of a map
//	k:<json>   the items of a list that have these keys
//	v:<json>   the item of a list that is this scalar
//	i:<index>  the item at this place
//	.          the value itself, besides parts of it
type fields map[string]any

const itself = "."

func (f fields) at(key string) fields {
	child, _ := f[key].(map[string]any)
	return child
}

func (f fields) parts() []string {
	keys := slices.Sorted(maps.Keys(f))
	return slices.DeleteFunc(keys, func(key string) bool { return key == itself })
}

// ownEntry returns the fields that the owner's applies own of a live object
// through the subresource, and whether managed fields name it at all. The fields
// belong to the object.
func ownEntry(live *unstructured.Unstructured, owner, subresource string) (fields, bool) {
	set, version, ok := appliedBy(live, owner, subresource)
	return set, ok && version == live.GetAPIVersion()
}

// appliedBy returns what ownEntry does, and the version that the fields were
// applied in: there is one entry for the applies of an owner, in the last one's.
func appliedBy(live *unstructured.Unstructured, owner, subresource string) (set fields, version string, found bool) {
	metadata, _ := live.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if entry["manager"] != owner || entry["operation"] != "Apply" {
			continue
		}
		if s, _ := entry["subresource"].(string); s != subresource {
			continue
		}
		set, ok := entry["fieldsV1"].(map[string]any)
		version, _ := entry["apiVersion"].(string)
		return set, version, ok
	}
	return nil, "", false
}

// A part of a value is what a key leads to.
type part struct {
	key string
	// values are at most one, but for list items whose keys repeat.
	values []any
	// place of the first value in its list, -1 if it has none; 0 for the field of
	// a map.
	place int
}

// partsOf returns what the keys lead to. Items of a list come in their order,
// which matters to server-side apply, whatever others have between them.
func (f fields) partsOf(in any) []part {
	keys := f.parts()
	out := make([]part, 0, len(keys))
	for _, key := range keys {
		out = append(out, resolve(key, in))
	}
	slices.SortStableFunc(out, func(a, b part) int { return cmp.Compare(a.place, b.place) })
	return out
}

func resolve(key string, in any) part {
	kind, rest, _ := strings.Cut(key, ":")
	switch kind {
	case "f":
		if v, ok := fieldOf(in, rest); ok {
			return part{key: key, values: []any{v}}
		}
		return part{key: key}
	case "k":
		return matching(key, in, hasKeys(rest))
	case "v":
		return matching(key, in, isEqual(rest))
	}
	list, _ := in.([]any)
	if i, err := strconv.Atoi(rest); err == nil && i >= 0 && i < len(list) {
		return part{key: key, values: list[i : i+1], place: i}
	}
	return part{key: key}
}

func fieldOf(in any, name string) (any, bool) {
	m, _ := in.(map[string]any)
	v, ok := m[name]
	return v, ok
}

func isEqual(spelled string) func(item any) bool {
	var want any
	if json.Unmarshal([]byte(spelled), &want) != nil {
		return func(any) bool { return false }
	}
	return func(item any) bool { return equivalent(want, item) }
}

// hasKeys also finds an item without some of the keys: what an intent leaves to
// the server's defaults is spelled out in the managed fields.
func hasKeys(spelled string) func(item any) bool {
	var want map[string]any
	if json.Unmarshal([]byte(spelled), &want) != nil {
		return func(any) bool { return false }
	}
	return func(item any) bool {
		found := false
		for key, value := range want {
			v, ok := fieldOf(item, key)
			if ok && !equivalent(value, v) {
				return false
			}
			found = found || ok
		}
		return found
	}
}

func matching(key string, in any, match func(item any) bool) part {
	list, _ := in.([]any)
	out := part{key: key, place: -1}
	for i, item := range list {
		if !match(item) {
			continue
		}
		if out.place < 0 {
			out.place = i
		}
		out.values = append(out.values, item)
	}
	return out
}

// owned hashes a set of fields with the values that a live object has there.
// Where the intent has an empty map or list, what others put into it is not
// ours: then only its being there counts. The order of our items counts.
func (d *digest) owned(set fields, live, intent any) {
	for _, p := range set.partsOf(live) {
		d.text(p.key)
		d.size(len(p.values))
		wanted := first(resolve(p.key, intent).values)
		for _, value := range p.values {
			d.ownedValue(set.at(p.key), value, wanted)
		}
	}
	if _, ok := set[itself]; ok {
		d.tag(tagPresent)
	}
}

func (d *digest) ownedValue(set fields, live, intent any) {
	switch {
	case len(set) > 0:
		d.owned(set, live, intent)
	case isContainer(live) && isContainer(intent) && isEmpty(intent):
		d.tag(tagPresent)
	default:
		d.value(live)
	}
}

func isContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func first(values []any) any {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}

// covers reports whether a set of fields is exactly that of the intent, and the
// live values there are literally the intent's, list items in the same order.
func covers(set fields, intent, live any) bool {
	if len(set) == 0 {
		return literally(intent, live)
	}
	parts := set.partsOf(intent)
	if len(parts) != length(intent)-unowned(set, intent) {
		return false
	}
	place := 0
	for _, wanted := range parts {
		p := resolve(wanted.key, live)
		if len(wanted.values) != 1 || len(p.values) > 1 || p.place < place {
			return false
		}
		if !covers(set.at(p.key), wanted.values[0], first(p.values)) {
			return false
		}
		place = p.place
	}
	return true
}

// literally takes what is in a map that the intent has empty for others'. What
// is in a list is more likely to be ours, of an earlier intent.
func literally(intent, live any) bool {
	if m, ok := intent.(map[string]any); ok && len(m) == 0 {
		_, ok := live.(map[string]any)
		return ok || isEmpty(live)
	}
	return equivalent(intent, live)
}

// unowned counts the fields of an intent that say nothing, and are therefore not
// owned.
func unowned(set fields, intent any) int {
	m, _ := intent.(map[string]any)
	n := 0
	for name, value := range m {
		if _, ok := set["f:"+name]; !ok && isEmpty(value) {
			n++
		}
	}
	return n
}

func length(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

// extract returns a copy of what a live value has at a set of fields: the intent
// whose apply would own them again.
func extract(set fields, live any) any {
	if len(set) == 0 {
		return runtime.DeepCopyJSONValue(live)
	}
	switch live := live.(type) {
	case map[string]any:
		return extractMap(set, live)
	case []any:
		return extractList(set, live)
	}
	return live
}

func extractMap(set fields, live map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range set.parts() {
		name, isField := strings.CutPrefix(key, "f:")
		if value, ok := live[name]; ok && isField {
			out[name] = extract(set.at(key), value)
		}
	}
	return out
}

// extractList keeps the live order, since the order of what is applied matters.
func extractList(set fields, live []any) []any {
	out := []any{}
	for _, item := range live {
		one := []any{item}
		for _, key := range set.parts() {
			if strings.HasPrefix(key, "i:") || len(resolve(key, one).values) == 0 {
				continue
			}
			out = append(out, withKeys(key, extract(set.at(key), item), item))
			break
		}
	}
	return out
}

// withKeys adds the keys that tell the item from others, where they are not
// owned themselves.
func withKeys(key string, extracted, item any) any {
	out, ok := extracted.(map[string]any)
	spelled, keyed := strings.CutPrefix(key, "k:")
	if !ok || !keyed {
		return extracted
	}
	var keys map[string]any
	if json.Unmarshal([]byte(spelled), &keys) != nil {
		return extracted
	}
	for name := range keys {
		if v, ok := fieldOf(item, name); ok {
			out[name] = v
		}
	}
	return out
}

// Owned returns a copy of the fields that the owner's earlier applies through
// the subresource own of a live object, without type and metadata: what to start
// from to change only some of it. It is empty if there are none. They may have
// been applied in an earlier version of the kind: what the live one has of them
// is still ours.
func Owned(live *unstructured.Unstructured, owner, subresource string) map[string]any {
	set, _, ok := appliedBy(live, owner, subresource)
	if !ok || len(set) == 0 {
		return map[string]any{}
	}
	out := extractMap(set, live.Object)
	delete(out, "metadata")
	return out
}
