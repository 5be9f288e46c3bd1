// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// maxDepth is how deeply a desired object may be nested. No kind comes near it,
// and the API server refuses not much more.
const maxDepth = 1000

// validate a response, so that whoever reads it later need not: it belongs to
// the request, each desired resource is an object with a kind, and no desired
// object holds what JSON can't say. What else an object holds is for the API
// server to judge.
func validate(req *fnv1.RunFunctionRequest, resp *fnv1.RunFunctionResponse) error {
	if tag := resp.GetMeta().GetTag(); tag != "" && tag != req.GetMeta().GetTag() {
		return errors.New("its tag is that of another request: the function must return the tag of the request it answers, or none")
	}
	if ttl := resp.GetMeta().GetTtl(); ttl != nil {
		if err := ttl.CheckValid(); err != nil {
			return fmt.Errorf("its TTL is no duration: %w", err)
		}
	}
	if err := validateStruct(resp.GetDesired().GetComposite().GetResource()); err != nil {
		return fmt.Errorf("desired composite: %w", err)
	}
	desired := resp.GetDesired().GetResources()
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if err := validateResource(name, desired[name]); err != nil {
			return fmt.Errorf("desired resource %q: %w", name, err)
		}
	}
	return nil
}

func validateResource(name string, r *fnv1.Resource) error {
	if name == "" {
		return errors.New("its name is empty")
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if r.GetResource().GetFields()[key].GetStringValue() == "" {
			return fmt.Errorf("it has no %s: the function must return the whole object", key)
		}
	}
	return validateStruct(r.GetResource())
}

func validateStruct(s *structpb.Struct) error {
	for _, key := range slices.Sorted(maps.Keys(s.GetFields())) {
		if err := validateValue(s.GetFields()[key], 1); err != nil {
			return fmt.Errorf("field %q: %w", key, err)
		}
	}
	return nil
}

func validateValue(v *structpb.Value, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	switch kind := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		if math.IsNaN(kind.NumberValue) || math.IsInf(kind.NumberValue, 0) {
			return errors.New("it holds a number that is not finite")
		}
	case *structpb.Value_StructValue:
		for _, value := range kind.StructValue.GetFields() {
			if err := validateValue(value, depth+1); err != nil {
				return err
			}
		}
	case *structpb.Value_ListValue:
		for _, item := range kind.ListValue.GetValues() {
			if err := validateValue(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
