// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// asStruct returns an object's view as functions are shown it. The object may be
// shared: it is not changed. As in JSON, integers beyond 2^53 lose precision.
func asStruct(obj *unstructured.Unstructured) (*structpb.Struct, error) {
	s, err := structpb.NewStruct(xr.View(obj))
	if err != nil {
		return nil, fmt.Errorf("cannot show %s %q to a function: %w", obj.GetKind(), obj.GetNamespace()+"/"+obj.GetName(), err)
	}
	return s, nil
}
