// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

func nested(depth int) *structpb.Value {
	v := structpb.NewStringValue("bottom")
	for range depth {
		v = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"a": v}})
	}
	return v
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	named := func(name string) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{name: {}}}}
	}
	cases := map[string]struct {
		resp *fnv1.RunFunctionResponse
		want string
	}{
		"ControlCharacters": {resp: named("a\x1bb"), want: `desired resource "a\x1bb": its name holds control characters`},
		"EndlessName": {
			resp: named(strings.Repeat("n", 1<<20)),
			want: `desired resource "` + strings.Repeat("n", maxQuoted) + `…": its name is longer than 1024 bytes`,
		},
		"Context": {
			resp: &fnv1.RunFunctionResponse{Context: &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewNumberValue(math.Inf(1))}}},
			want: `context: field "x": it holds a number that is not finite`,
		},
		"Composite": {
			resp: &fnv1.RunFunctionResponse{Desired: &fnv1.State{Composite: &fnv1.Resource{Resource: &structpb.Struct{
				Fields: map[string]*structpb.Value{"status": nested(maxDepth)},
			}}}},
			want: `desired composite: field "status": it is nested more than 1000 deep`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := validate(&fnv1.RunFunctionRequest{}, tc.resp); err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestValidateSaysTheSameOfSeveralFlaws(t *testing.T) {
	fields := map[string]*structpb.Value{"deep": nested(maxDepth)}
	for i := range 20 {
		fields[strconv.Itoa(i)] = structpb.NewNumberValue(math.NaN())
	}
	resp := &fnv1.RunFunctionResponse{Context: &structpb.Struct{Fields: map[string]*structpb.Value{
		"x": structpb.NewStructValue(&structpb.Struct{Fields: fields}),
	}}}
	for range 20 {
		if err := validate(&fnv1.RunFunctionRequest{}, resp); err == nil || !strings.Contains(err.Error(), "nested") {
			t.Fatalf("got %v, want the same each time: it is nested too deeply", err)
		}
	}
}
