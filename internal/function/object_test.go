// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestStructIsTheView(t *testing.T) {
	obj := configMap("ns", "a", map[string]string{"app": "web"})
	obj.Object["data"] = map[string]any{"n": int64(7), "f": 0.5, "b": true, "nothing": nil, "list": []any{"x", int64(1)}}
	before := obj.DeepCopy()
	s, err := AsStruct(obj)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, obj); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
	want := before.Object
	unstructured.RemoveNestedField(want, "metadata", "resourceVersion")
	want["data"] = map[string]any{"n": 7.0, "f": 0.5, "b": true, "nothing": nil, "list": []any{"x", 1.0}}
	if diff := cmp.Diff(want, decoded(t, s).AsMap()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// decoded is a Struct as the other end of a connection sees it.
func decoded(t *testing.T, s *structpb.Struct) *structpb.Struct {
	t.Helper()
	encoded, err := proto.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out := &structpb.Struct{}
	if err := proto.Unmarshal(encoded, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStructOfWhatCannotBeShown(t *testing.T) {
	obj := configMap("ns", "a", nil)
	obj.Object["data"] = "\xff"
	if _, err := AsStruct(obj); err == nil {
		t.Error("text that is not UTF-8 was accepted")
	}
}
