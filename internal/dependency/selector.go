// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"encoding/binary"
	"maps"
	"slices"
)

// A selector is the labels of a reference as one text, the same for equal labels
// whatever characters a function put into them: its pairs by key, with the length
// before each key and each value. Without labels it is empty, and matches
// everything.
type selector string

func selectorOf(labels map[string]string) selector {
	if len(labels) == 0 {
		return ""
	}
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		b = appendText(b, key)
		b = appendText(b, labels[key])
	}
	return selector(b)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// pairs yields each key and its value, in order of the keys.
func (s selector) pairs(yield func(key, value string) bool) {
	for s != "" {
		var key, value string
		key, s = s.cut()
		value, s = s.cut()
		if !yield(key, value) {
			return
		}
	}
}

// cut returns the first text of the selector and what follows it.
func (s selector) cut() (string, selector) {
	length, shift := 0, 0
	for {
		b := s[0]
		s = s[1:]
		length |= int(b&0x7f) << shift
		if b < 0x80 {
			return string(s[:length]), s[length:]
		}
		shift += 7
	}
}

// labels returns the selector as it was given, or nil if it is empty.
func (s selector) labels() map[string]string {
	if s == "" {
		return nil
	}
	labels := map[string]string{}
	for key, value := range s.pairs {
		labels[key] = value
	}
	return labels
}

// matches reports whether the labels contain every pair of the selector.
func (s selector) matches(labels map[string]string) bool {
	for key, value := range s.pairs {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// is reports whether the selector is that of the labels.
func (s selector) is(labels map[string]string) bool {
	n := 0
	for range s.pairs {
		n++
	}
	return n == len(labels) && s.matches(labels)
}
