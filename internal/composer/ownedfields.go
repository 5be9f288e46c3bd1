// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
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
	metadata, _ := live.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if entry["manager"] != owner || entry["operation"] != "Apply" || entry["apiVersion"] != live.Object["apiVersion"] {
			continue
		}
		if s, _ := entry["subresource"].(string); s != subresource {
			continue
		}
		set, ok := entry["fieldsV1"].(map[string]any)
		return set, ok
	}
	return nil, false
}

// resolve returns what a key leads to: at most one value, but for list items
// whose keys repeat.
func resolve(key string, in any) []any {
	kind, rest, _ := strings.Cut(key, ":")
	switch kind {
	case "f":
		if v, ok := fieldOf(in, rest); ok {
			return []any{v}
		}
		return nil
	case "k":
		return itemsWithKeys(rest, in)
	case "v":
		return itemsEqual(rest, in)
	}
	list, _ := in.([]any)
	if i, err := strconv.Atoi(rest); err == nil && i >= 0 && i < len(list) {
		return list[i : i+1]
	}
	return nil
}

func fieldOf(in any, name string) (any, bool) {
	m, _ := in.(map[string]any)
	v, ok := m[name]
	return v, ok
}

func itemsEqual(spelled string, in any) []any {
	var want any
	if json.Unmarshal([]byte(spelled), &want) != nil {
		return nil
	}
	return matching(in, func(item any) bool { return equivalent(want, item) })
}

// itemsWithKeys also finds an item without some of the keys: what an intent
// leaves to the server's defaults is spelled out in the managed fields.
func itemsWithKeys(spelled string, in any) []any {
	var want map[string]any
	if json.Unmarshal([]byte(spelled), &want) != nil {
		return nil
	}
	return matching(in, func(item any) bool {
		found := false
		for key, value := range want {
			v, ok := fieldOf(item, key)
			if ok && !equivalent(value, v) {
				return false
			}
			found = found || ok
		}
		return found
	})
}

func matching(in any, match func(any) bool) []any {
	list, _ := in.([]any)
	var out []any
	for _, item := range list {
		if match(item) {
			out = append(out, item)
		}
	}
	return out
}

// owned hashes a set of fields with the values that a live object has there.
// Where the intent has an empty map or list, what others put into it is not
// ours: then only its being there counts.
func (d *digest) owned(set fields, live, intent any) {
	for _, key := range set.parts() {
		d.text(key)
		child, values := set.at(key), resolve(key, live)
		d.size(len(values))
		wanted := first(resolve(key, intent))
		for _, value := range values {
			d.ownedValue(child, value, wanted)
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
// live values there are literally the intent's.
func covers(set fields, intent, live any) bool {
	if len(set) == 0 {
		return literally(intent, live)
	}
	keys := set.parts()
	if len(keys) != length(intent)-unowned(set, intent) {
		return false
	}
	for _, key := range keys {
		wanted, values := resolve(key, intent), resolve(key, live)
		if len(wanted) != 1 || len(values) > 1 || !covers(set.at(key), wanted[0], first(values)) {
			return false
		}
	}
	return true
}

func literally(intent, live any) bool {
	if isContainer(intent) && isEmpty(intent) && isContainer(live) {
		return true
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
			if strings.HasPrefix(key, "i:") || len(resolve(key, one)) == 0 {
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
// from to change only some of it. It is empty if there are none.
func Owned(live *unstructured.Unstructured, owner, subresource string) map[string]any {
	set, ok := ownEntry(live, owner, subresource)
	if !ok || len(set) == 0 {
		return map[string]any{}
	}
	out := extractMap(set, live.Object)
	delete(out, "metadata")
	return out
}
