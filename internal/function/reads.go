// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// An item is a requirement and what was read for it: resources or a schema, or
// the reason why it could not be read.
type item struct {
	requirement dependency.Requirement
	resources   *fnv1.Resources
	schema      *fnv1.Schema
	err         error
}

func (it item) putInto(req *fnv1.RunFunctionRequest) {
	switch field(it.requirement) {
	case fieldSchemas:
		req.RequiredSchemas[it.requirement.Name] = it.schema
	case fieldExtraResources:
		req.ExtraResources[it.requirement.Name] = it.resources //nolint:staticcheck // Older functions read nothing else.
	default:
		req.RequiredResources[it.requirement.Name] = it.resources
	}
}

func firstError(items []item) error {
	for _, it := range items {
		if it.err != nil {
			return it.err
		}
	}
	return nil
}

// reads is what a step has read so far. Each reference is read once in a step,
// whatever changes meanwhile: the change arrives as an event. One goroutine uses
// it.
type reads struct {
	step    Step
	schemas *Schemas

	taken     []item
	resources map[string]*fnv1.Resources // by reference
}

func newReads(step Step, schemas *Schemas) *reads {
	return &reads{step: step, schemas: schemas, resources: map[string]*fnv1.Resources{}}
}

// take records each requirement, and then reads what it refers to.
func (r *reads) take(ctx context.Context, wanted []dependency.Requirement) []item {
	items := make([]item, len(wanted))
	readers := make([]Reader, len(wanted))
	known := make([]bool, len(wanted))

	// A kind's watch may take its second to start, so they start side by side.
	var recording sync.WaitGroup
	for i, want := range wanted {
		if items[i], known[i] = r.find(want); known[i] {
			continue
		}
		recording.Go(func() {
			readers[i], items[i].err = r.require(ctx, want)
		})
	}
	recording.Wait()

	for i := range items {
		if known[i] {
			continue
		}
		if items[i].err == nil {
			items[i].err = r.read(ctx, &items[i], readers[i])
		}
		if items[i].err != nil {
			items[i].err = fmt.Errorf("requirement %q: %w", items[i].requirement.Name, items[i].err)
		}
		r.taken = append(r.taken, items[i])
	}
	return items
}

// find what was taken for the same requirement before.
func (r *reads) find(want dependency.Requirement) (item, bool) {
	for _, it := range r.taken {
		if it.requirement.From == want.From && it.requirement.Name == want.Name && sameSelector(it.requirement, want) {
			return it, true
		}
	}
	return item{requirement: want}, false
}

func (r *reads) require(ctx context.Context, want dependency.Requirement) (Reader, error) {
	kind := want.Reference.GVK
	if field(want) == fieldSchemas {
		kind = want.Subject
	}
	if kind.Version == "" || kind.Kind == "" {
		return nil, errors.New("it names no apiVersion or no kind: the Composition must set both")
	}
	return r.step.From.Require(ctx, r.step.XR, want)
}

func (r *reads) read(ctx context.Context, it *item, from Reader) error {
	if field(it.requirement) != fieldSchemas {
		var err error
		it.resources, err = r.readResources(it.requirement.Reference, from)
		return err
	}
	var err error
	it.schema, it.requirement.Reference, err = r.schemas.read(ctx, it.requirement.Subject, definition{
		at: it.requirement.Reference,
		in: from,
		require: func(at dependency.Reference) (Reader, error) {
			want := it.requirement
			want.Reference = at
			return r.require(ctx, want)
		},
	})
	return err
}

func (r *reads) readResources(ref dependency.Reference, from Reader) (*fnv1.Resources, error) {
	key := ref.String()
	if found, ok := r.resources[key]; ok {
		return found, nil
	}
	found := &fnv1.Resources{}
	for _, obj := range readObjects(ref, from) {
		s, err := AsStruct(obj)
		if err != nil {
			return nil, err
		}
		found.Items = append(found.Items, &fnv1.Resource{Resource: s})
	}
	r.resources[key] = found
	return found, nil
}

// readObjects sorts them, so that equal objects make equal requests.
func readObjects(ref dependency.Reference, from Reader) []*unstructured.Unstructured {
	if ref.Name == "" {
		objs := slices.Clone(from.List(ref.Namespace, ref.Labels))
		slices.SortFunc(objs, compareObjects)
		return objs
	}
	if obj := from.Get(ref.Namespace, ref.Name); obj != nil {
		return []*unstructured.Unstructured{obj}
	}
	return nil
}

func compareObjects(a, b *unstructured.Unstructured) int {
	if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
		return c
	}
	return strings.Compare(a.GetName(), b.GetName())
}

// likelyDefinition refers to the CustomResourceDefinition by which a kind would
// be defined, if its plural is formed as usual.
func likelyDefinition(gvk schema.GroupVersionKind) dependency.Reference {
	return definitionNamed(usualPlural(gvk) + "." + gvk.Group)
}
