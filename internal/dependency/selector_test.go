// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSelectorsAreUnambiguous(t *testing.T) {
	seen := map[selector]map[string]string{}
	spelt := map[string]map[string]string{}
	for _, labels := range []map[string]string{
		{}, {"": ""}, {"a": "b"}, {"a": `b","c"="d`}, {"a": "b", "c": "d"}, {"a=b": ""}, {"a": "=b"},
		{"a": "\xff"}, {"a": `\xff`}, {"a": "\x00"}, {`a"`: ""}, {"a": `"`}, {"a": "\x01b\x01c"}, {"a\x01b": "c"},
		{strings.Repeat("k", 300): strings.Repeat("v", 20000)}, {strings.Repeat("k", 300): strings.Repeat("v", 20001)},
	} {
		s := selectorOf(labels)
		if twin, ok := seen[s]; ok {
			t.Errorf("%q and %q are one selector", labels, twin)
		}
		seen[s] = labels
		text := canonical(labels)
		if twin, ok := spelt[text]; ok {
			t.Errorf("%q and %q are both spelt %s", labels, twin, text)
		}
		spelt[text] = labels
	}
}

func TestSelectorIsItsLabels(t *testing.T) {
	alphabet := rapid.SampledFrom([]string{"", "a", "b", "\x00", "\x01a", strings.Repeat("x", 128)})
	labels := rapid.MapOfN(alphabet, alphabet, 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := labels.Draw(t, "a"), labels.Draw(t, "b")
		s := selectorOf(a)

		same(t, "labels", a, s.labels())
		same(t, "is", maps.Equal(a, b), s.is(b))
		matches := true
		for key, value := range a {
			have, ok := b[key]
			matches = matches && ok && have == value
		}
		same(t, "matches", matches, s.matches(b))
	})
}
