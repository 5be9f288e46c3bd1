// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	schemaRefPrefix = "#/components/schemas/"
	extensionKinds  = "x-kubernetes-group-version-kind"
)

// An openAPI document, as far as it matters here.
type openAPI struct {
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

// resolveKind returns the schema of a kind from an OpenAPI v3 document, with
// references resolved; nil if the document doesn't have the kind.
func resolveKind(document []byte, subject schema.GroupVersionKind) (map[string]any, error) {
	doc := &openAPI{}
	if err := json.Unmarshal(document, doc); err != nil {
		return nil, fmt.Errorf("cannot decode the OpenAPI document: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if describes(doc.Components.Schemas[name], subject) {
			return doc.target(name, map[string]bool{}), nil
		}
	}
	return nil, nil
}

func describes(s map[string]any, subject schema.GroupVersionKind) bool {
	kinds, _ := s[extensionKinds].([]any)
	for _, entry := range kinds {
		kind, _ := entry.(map[string]any)
		if kind["group"] == subject.Group && kind["version"] == subject.Version && kind["kind"] == subject.Kind {
			return true
		}
	}
	return false
}

// target is the schema of that name, resolved. within holds the names that are
// being resolved: a schema that contains itself is cut there, down to its type.
func (d *openAPI) target(name string, within map[string]bool) map[string]any {
	s := d.Components.Schemas[name]
	if within[name] {
		cut := map[string]any{}
		for _, key := range []string{"description", "type"} {
			if value, ok := s[key]; ok {
				cut[key] = value
			}
		}
		return cut
	}
	within[name] = true
	defer delete(within, name)
	return d.resolveMap(s, within)
}

func (d *openAPI) resolve(value any, within map[string]bool) any {
	switch value := value.(type) {
	case map[string]any:
		return d.resolveMap(value, within)
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = d.resolve(item, within)
		}
		return items
	default:
		return value
	}
}

func (d *openAPI) resolveMap(s map[string]any, within map[string]bool) map[string]any {
	out := make(map[string]any, len(s))
	name, wrapper, isRef := reference(s)
	if isRef {
		maps.Copy(out, d.target(name, within))
	}
	for key, value := range s {
		if key != wrapper {
			out[key] = d.resolve(value, within)
		}
	}
	return out
}

// reference returns which schema s refers to, and the key that says so. Since
// nothing may stand beside a $ref, those with a description or a default are
// wrapped in an allOf of one.
func reference(s map[string]any) (name, key string, ok bool) {
	if ref, isString := s["$ref"].(string); isString {
		return schemaName(ref), "$ref", true
	}
	if all, _ := s["allOf"].([]any); len(all) == 1 {
		only, _ := all[0].(map[string]any)
		if ref, isString := only["$ref"].(string); isString && len(only) == 1 {
			return schemaName(ref), "allOf", true
		}
	}
	return "", "", false
}

// schemaName undoes the escapes of a JSON pointer.
func schemaName(ref string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.TrimPrefix(ref, schemaRefPrefix))
}
