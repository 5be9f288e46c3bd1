// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import "maps"

// value returns what is at the path, or nil. What it returns is not a copy.
func value(object map[string]any, path ...string) any {
	var v any = object
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func text(object map[string]any, path ...string) string {
	s, _ := value(object, path...).(string)
	return s
}

func list(object map[string]any, path ...string) []any {
	l, _ := value(object, path...).([]any)
	return l
}

// with returns the object with the value at the path, or with nothing there if
// the value is nil. The maps along the path are copied, not changed: whoever
// shares them, such as a View taken before, keeps what it has.
func with(object map[string]any, v any, path ...string) map[string]any {
	next := maps.Clone(object)
	if next == nil {
		next = map[string]any{}
	}
	key := path[0]
	if len(path) > 1 {
		child, ok := next[key].(map[string]any)
		if !ok && v == nil {
			return next
		}
		next[key] = with(child, v, path[1:]...)
		return next
	}
	if v == nil {
		delete(next, key)
		return next
	}
	next[key] = v
	return next
}
