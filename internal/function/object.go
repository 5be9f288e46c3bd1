// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// AsStruct returns an object's view as functions are shown it. The object may be
// shared: it is not changed. As in JSON, integers beyond 2^53 lose precision.
//
// The Struct holds its fields encoded, as protobuf holds fields that it doesn't
// know: however many steps and rounds show the object, it is encoded once. They
// can be read only after a message with it has been encoded and decoded.
func AsStruct(obj *unstructured.Unstructured) (*structpb.Struct, error) {
	var e encoder
	if err := e.fields(xr.View(obj)); err != nil {
		return nil, fmt.Errorf("cannot show %s %q to functions: %w", obj.GetKind(), obj.GetNamespace()+"/"+obj.GetName(), err)
	}
	s := &structpb.Struct{}
	s.ProtoReflect().SetUnknown(e.out)
	return s, nil
}
