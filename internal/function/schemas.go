// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"k8s.io/utils/clock"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// SchemasConfig is what Schemas need; all of it is required.
type SchemasConfig struct {
	// Published is the API server's OpenAPI v3.
	Published openapi.Client

	Clock clock.PassiveClock
}

// Schemas finds the OpenAPI v3 schema of kinds as the API server publishes it.
//
// The schema of a kind that a CustomResourceDefinition defines is built from
// that object as its watch keeps it, by the API server's own library: what the
// API server publishes lags behind the event that wakes an XR. Other kinds'
// schemas are read from the API server.
//
// It is safe for concurrent use. Schemas that it returns are shared: nobody
// changes them.
type Schemas struct {
	published *published

	mu      sync.Mutex // guards what follows; not held while building
	defined map[schema.GroupVersionKind]definedSchema
}

// A definedSchema is that of one generation of a CustomResourceDefinition.
type definedSchema struct {
	of     string // UID and generation
	schema *fnv1.Schema
}

// NewSchemas returns Schemas that have read nothing yet.
func NewSchemas(config SchemasConfig) (*Schemas, error) {
	if config.Published == nil || config.Clock == nil {
		return nil, errors.New("cannot find schemas without the API server's OpenAPI and a clock")
	}
	return &Schemas{
		published: newPublished(config.Published, config.Clock),
		defined:   map[schema.GroupVersionKind]definedSchema{},
	}, nil
}

// A definition is where the CustomResourceDefinition of a kind is looked for.
type definition struct {
	at dependency.Reference // recorded already
	in Reader               // what the watch of CustomResourceDefinitions keeps

	// require records another reference, and returns where to read it.
	require func(dependency.Reference) (Reader, error)
}

// read the schema of a kind, and return the reference whose change changes the
// schema. The schema is empty if the kind is unknown, and the reference is to
// every definition, so that installing the kind is noticed.
func (s *Schemas) read(ctx context.Context, subject schema.GroupVersionKind, where definition) (*fnv1.Schema, dependency.Reference, error) {
	crd, at, err := where.find(subject)
	if err != nil {
		return nil, at, err
	}
	if crd != nil {
		found, err := s.ofDefinition(crd, subject)
		return found, at, err
	}

	found, err := s.published.schema(ctx, subject)
	switch {
	case err != nil:
		return nil, at, fmt.Errorf("cannot read the schema of %s %s: %w", subject.GroupVersion(), subject.Kind, err)
	case found != nil:
		// Should the kind be defined one day, then most likely under this name.
		return found, likelyDefinition(subject), nil
	default:
		return &fnv1.Schema{}, at, nil
	}
}

// find the definition of a kind. What it returns was read after the reference
// that it returns was recorded. The usual name is tried first, so that a run
// seldom depends on every definition, if only until it ends.
func (d definition) find(subject schema.GroupVersionKind) (*unstructured.Unstructured, dependency.Reference, error) {
	if crd := d.in.Get("", d.at.Name); defines(crd, subject) {
		return crd, d.at, nil
	}
	if !definable(subject.Group) {
		return nil, likelyDefinition(subject), nil
	}
	every := definitionNamed("")
	in, err := d.require(every)
	if err != nil {
		return nil, every, err
	}
	for _, crd := range in.List("", nil) {
		if !defines(crd, subject) {
			continue
		}
		at := definitionNamed(crd.GetName())
		if in, err = d.require(at); err != nil {
			return nil, at, err
		}
		if crd = in.Get("", at.Name); defines(crd, subject) {
			return crd, at, nil
		}
	}
	return nil, every, nil
}

// definable tells whether a CustomResourceDefinition may have the group: it
// needs a dot, which only some built-in groups have.
func definable(group string) bool {
	return strings.Contains(group, ".")
}

func defines(crd *unstructured.Unstructured, subject schema.GroupVersionKind) bool {
	if crd == nil {
		return false
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return group == subject.Group && kind == subject.Kind
}

// ofDefinition is the schema that a CustomResourceDefinition gives a kind; empty
// if it doesn't serve the version, or nothing yet.
func (s *Schemas) ofDefinition(crd *unstructured.Unstructured, subject schema.GroupVersionKind) (*fnv1.Schema, error) {
	if !established(crd) {
		return &fnv1.Schema{}, nil
	}
	of := fmt.Sprintf("%s/%d", crd.GetUID(), crd.GetGeneration())
	s.mu.Lock()
	cached := s.defined[subject]
	s.mu.Unlock()
	if cached.of == of {
		return cached.schema, nil
	}

	built, err := buildSchema(crd, subject)
	if err != nil {
		return nil, fmt.Errorf("cannot build the schema of %s %s from CustomResourceDefinition %q: %w", subject.GroupVersion(), subject.Kind, crd.GetName(), err)
	}
	s.mu.Lock()
	s.defined[subject] = definedSchema{of: of, schema: built}
	s.mu.Unlock()
	return built, nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, entry := range list {
		condition, _ := entry.(map[string]any)
		if condition["type"] == string(apiextensionsv1.Established) {
			return condition["status"] == string(apiextensionsv1.ConditionTrue)
		}
	}
	return false
}

func definitionNamed(name string) dependency.Reference {
	return dependency.Reference{
		GVK:  apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		Name: name,
	}
}

func usualPlural(gvk schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.Resource
}

func asSchema(content map[string]any) (*fnv1.Schema, error) {
	s, err := structpb.NewStruct(content)
	if err != nil {
		return nil, err
	}
	return &fnv1.Schema{OpenapiV3: s}, nil
}
