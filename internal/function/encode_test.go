// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"
)

// encoded is what protobuf makes of an object.
func encoded(t interface{ Fatal(...any) }, object map[string]any) []byte {
	s, err := structpb.NewStruct(object)
	if err != nil {
		t.Fatal(err)
	}
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEncoderWritesWhatProtobufDoes(t *testing.T) {
	deep := map[string]any{}
	for range 500 {
		deep = map[string]any{"d": []any{deep}}
	}
	cases := map[string]map[string]any{
		"Empty":       {},
		"Scalars":     {"n": nil, "t": true, "f": false, "i": int64(math.MinInt64), "h": 0.5, "z": 0.0, "s": "", "": "no key"},
		"Empties":     {"o": map[string]any{}, "l": []any{}, "ll": []any{[]any{}, map[string]any{}}},
		"NilMaps":     {"o": map[string]any(nil), "l": []any(nil)},
		"Odd":         {"i": 1, "u": uint32(7), "n": json.Number("12"), "b": []byte("bytes")},
		"Order":       {"b": 1, "a": 1, "ä": 1, "B": 1, "aa": 1, "a.b": 1},
		"Lengths":     {"127": strings.Repeat("x", 127), "128": strings.Repeat("x", 128), "16384": strings.Repeat("x", 16384)},
		"Deep":        deep,
		"NotFinite":   {"inf": math.Inf(1)},
		"ManyInAList": {"l": make([]any, 1000)},
	}
	for name, object := range cases {
		t.Run(name, func(t *testing.T) {
			var e encoder
			if err := e.fields(object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(encoded(t, object), e.out, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("encoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncoderAgreesWithProtobuf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := drawObject(t, 4)
		var e encoder
		if err := e.fields(object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(encoded(t, object), e.out, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%#v encoded (-want +got):\n%s", object, diff)
		}
	})
}

// drawObject returns JSON as an informer's decoder makes it.
func drawObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for range rapid.IntRange(0, 5).Draw(t, "fields") {
		object[rapid.String().Draw(t, "key")] = drawValue(t, depth)
	}
	return object
}

func drawValue(t *rapid.T, depth int) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64().Draw(t, "integer")
	case 3:
		return rapid.Float64().Draw(t, "number")
	case 4:
		return strings.Repeat(rapid.String().Draw(t, "text"), rapid.SampledFrom([]int{1, 1, 20, 400}).Draw(t, "times"))
	case 5:
		return drawObject(t, depth-1)
	default:
		list := make([]any, rapid.IntRange(0, 4).Draw(t, "items"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	}
}

func TestEncoderRefusesWhatProtobufCannotHold(t *testing.T) {
	cases := map[string]map[string]any{
		"Text":        {"s": "\xff"},
		"Key":         {"\xff": 1},
		"DeepText":    {"o": map[string]any{"l": []any{"\xff"}}},
		"NotJSON":     {"c": make(chan int)},
		"NotJSONDeep": {"l": []any{map[string]any{"c": make(chan int)}}},
	}
	for name, object := range cases {
		t.Run(name, func(t *testing.T) {
			var e encoder
			if err := e.fields(object); err == nil {
				t.Errorf("%#v was encoded", object)
			}
		})
	}
}
