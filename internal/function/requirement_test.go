// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

func TestRequirementsAreLimited(t *testing.T) {
	many := func(n int) *fnv1.Requirements {
		selectors := map[string]*fnv1.ResourceSelector{}
		for i := range n {
			selectors[strconv.Itoa(i)] = byName("ns", strconv.Itoa(i))
		}
		return resources(selectors)
	}
	one := func(name string, selector *fnv1.ResourceSelector) *fnv1.Requirements {
		return resources(map[string]*fnv1.ResourceSelector{name: selector})
	}
	endless := strings.Repeat("x", maxName+1)
	tooLong := fmt.Sprintf(`requirement "it" in resources: it holds a name of more than %d bytes`, maxName)
	cases := map[string]struct {
		asked *fnv1.Requirements
		taken int
		want  string // empty if all is fine
	}{
		"AsManyAsAllowed": {asked: many(maxRequirements), taken: maxRequirements},
		"TooMany": {
			asked: many(40 * maxRequirements),
			want:  "it asks for more than 1000 things at once: the function must ask by labels, or by kind alone, for what is alike",
		},
		"TooMuchToSay": {
			asked: one("it", byLabels(map[string]string{"a": strings.Repeat("x", maxRequirementsSize)})),
			want:  "what it asks for takes more than 1048576 bytes to say: the function must ask by fewer and shorter selectors",
		},
		"LongName":      {asked: one("it", byName("ns", endless)), want: tooLong},
		"LongNamespace": {asked: one("it", byName(endless, "a")), want: tooLong},
		"LongKind":      {asked: one("it", &fnv1.ResourceSelector{ApiVersion: "v1", Kind: endless}), want: tooLong},
		"LongSchemaKind": {
			asked: &fnv1.Requirements{Schemas: map[string]*fnv1.SchemaSelector{"it": {ApiVersion: "v1", Kind: endless}}},
			want:  strings.Replace(tooLong, "resources", "schemas", 1),
		},
		"LongRequirementName": {
			asked: one(endless, byName("ns", "a")),
			want:  strings.Replace(tooLong, "it", strings.Repeat("x", maxQuoted)+"…", 1),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decodeRequirements("step", tc.asked)
			if len(got) != tc.taken {
				t.Errorf("%d requirements are taken, want %d", len(got), tc.taken)
			}
			if text := fmt.Sprint(err); (tc.want == "") != (err == nil) || err != nil && text != tc.want {
				t.Errorf("got  %s\nwant %s", text, tc.want)
			}
		})
	}
}
