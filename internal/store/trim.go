// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OwnFieldOwners is the prefix of every field owner under which this operator
// applies.
const OwnFieldOwners = "apiextensions.crossplane.io/"

// trim drops, before an object is kept, the managed fields that nobody here
// reads: all but this operator's own Apply entries, which tell drift. It is
// called with objects fresh from the wire, which nobody else holds yet.
func trim(o any) (any, error) {
	obj, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	metadata, ok := obj.Object["metadata"].(map[string]any)
	if !ok {
		return obj, nil
	}
	entries, ok := metadata["managedFields"].([]any)
	if !ok {
		return obj, nil
	}
	var own []any
	for _, e := range entries {
		if isOwnApply(e) {
			own = append(own, e)
		}
	}
	if len(own) == 0 {
		delete(metadata, "managedFields")
		return obj, nil
	}
	metadata["managedFields"] = own
	return obj, nil
}

func isOwnApply(entry any) bool {
	e, ok := entry.(map[string]any)
	if !ok {
		return false
	}
	manager, _ := e["manager"].(string)
	operation, _ := e["operation"].(string)
	return operation == string(metav1.ManagedFieldsOperationApply) && strings.HasPrefix(manager, OwnFieldOwners)
}
