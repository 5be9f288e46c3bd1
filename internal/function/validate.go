// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

const (
	// maxDepth is how deeply a desired object may be nested. No kind comes near it,
	// and the API server refuses not much more.
	maxDepth = 1000

	// maxName is how long a name may be that a function gives, in bytes. Nothing in
	// Kubernetes has one half as long.
	maxName = 1024
)

// validate a response, so that whoever reads it later need not: it belongs to
// the request, each desired resource is an object with a kind and can be named to
// people, and neither a desired object nor the context for later steps holds what
// JSON can't say. What else an object holds is for the API server to judge.
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
	if err := validateStruct(resp.GetContext()); err != nil {
		return fmt.Errorf("context: %w", err)
	}
	desired := resp.GetDesired().GetResources()
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if err := validateResource(name, desired[name]); err != nil {
			return fmt.Errorf("desired resource %s: %w", quote(name), err)
		}
	}
	return nil
}

func validateResource(name string, r *fnv1.Resource) error {
	if err := validateName(name); err != nil {
		return err
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if r.GetResource().GetFields()[key].GetStringValue() == "" {
			return fmt.Errorf("it has no %s: the function must return the whole object", key)
		}
	}
	return validateStruct(r.GetResource())
}

func validateName(name string) error {
	switch {
	case name == "":
		return errors.New("its name is empty")
	case len(name) > maxName:
		return fmt.Errorf("its name is longer than %d bytes", maxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name holds control characters")
	}
	return nil
}

func validateStruct(s *structpb.Struct) error {
	for _, key := range slices.Sorted(maps.Keys(s.GetFields())) {
		if err := flawOf(s.GetFields()[key], 1).err(); err != nil {
			return fmt.Errorf("field %s: %w", quote(key), err)
		}
	}
	return nil
}

// A flaw is what is wrong with a value. Of several the greatest is told, so that
// the order in which a map is walked does not show.
type flaw uint8

const (
	sound flaw = iota
	notFinite
	tooDeep
)

func (f flaw) err() error {
	switch f {
	case notFinite:
		return errors.New("it holds a number that is not finite")
	case tooDeep:
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	default:
		return nil
	}
}

func flawOf(v *structpb.Value, depth int) flaw {
	if depth > maxDepth {
		return tooDeep
	}
	found := sound
	switch kind := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		if math.IsNaN(kind.NumberValue) || math.IsInf(kind.NumberValue, 0) {
			return notFinite
		}
	case *structpb.Value_StructValue:
		for _, value := range kind.StructValue.GetFields() {
			found = max(found, flawOf(value, depth+1))
		}
	case *structpb.Value_ListValue:
		for _, item := range kind.ListValue.GetValues() {
			found = max(found, flawOf(item, depth+1))
		}
	}
	return found
}
