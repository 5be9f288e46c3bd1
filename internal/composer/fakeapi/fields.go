// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// epoch is when everything happens here.
var epoch = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// object is the type of every kind: metadata and conditions as all kinds have
// them; in spec, ports as a Service has them, a selector that is atomic, tags
// that are a set; everything else is a map if it looks like one, or atomic.
const object = `
types:
- name: object
  map:
    fields:
    - {name: metadata, type: {namedType: metadata}}
    - {name: spec, type: {namedType: spec}}
    - {name: status, type: {namedType: status}}
    elementType: {namedType: deduced}
- name: metadata
  map:
    fields:
    - name: ownerReferences
      type: {list: {elementType: {namedType: atomic}, elementRelationship: associative, keys: [uid]}}
    - name: finalizers
      type: {list: {elementType: {scalar: string}, elementRelationship: associative}}
    elementType: {namedType: deduced}
- name: spec
  map:
    fields:
    - name: ports
      type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, protocol]}}
    - {name: selector, type: {namedType: atomic}}
    - name: tags
      type: {list: {elementType: {scalar: string}, elementRelationship: associative}}
    elementType: {namedType: deduced}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: numeric}}
    - {name: protocol, type: {scalar: string}, default: TCP}
    elementType: {namedType: deduced}
- name: status
  map:
    fields:
    - name: conditions
      type: {list: {elementType: {namedType: deduced}, elementRelationship: associative, keys: [type]}}
    elementType: {namedType: deduced}
- name: atomic
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: atomic}, elementRelationship: atomic}
- name: deduced
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: deduced}, elementRelationship: separable}
`

var parser = mustParse(object)

func mustParse(schema typed.YAMLObject) *typed.Parser {
	p, err := typed.NewParser(schema)
	if err != nil {
		panic(fmt.Errorf("cannot parse the type of objects: %w", err))
	}
	return p
}

type converter struct{}

func (converter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("not an unstructured object: %T", obj)
	}
	return parser.Type("object").FromUnstructured(u.Object, opts...)
}

func (converter) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	content, ok := v.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// single is a kind that has one version, no defaults, and no other form.
type single struct{}

func (single) Convert(_, _, _ any) error { return nil }
func (single) Default(runtime.Object)    {}
func (single) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (single) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (single) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}

func manager(kind schema.GroupVersionKind, subresource string) *managedfields.FieldManager {
	others := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	if subresource == "status" {
		others = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
	}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(kind.GroupVersion().String()): fieldpath.NewExcludeSetFilter(others),
	}
	m, err := managedfields.NewDefaultFieldManager(converter{}, single{}, single{}, single{}, kind, kind.GroupVersion(), subresource, reset)
	if err != nil {
		panic(fmt.Errorf("cannot manage fields: %w", err))
	}
	return m
}

// merge applies obj to the live object, or to its status.
func merge(live, obj *unstructured.Unstructured, o metav1.ApplyOptions, subresource string) (*unstructured.Unstructured, error) {
	m := manager(obj.GroupVersionKind(), subresource)
	merged, err := m.Apply(live.DeepCopy(), obj.DeepCopy(), o.FieldManager, o.Force)
	if err != nil {
		return nil, err
	}
	next := content(merged)
	next.SetResourceVersion(live.GetResourceVersion())
	if subresource == "" {
		keep(next, live, "status")
	} else {
		keep(next, live, "spec")
	}
	return next, nil
}

// keep takes back what a request to one part of an object says of another.
func keep(next, live *unstructured.Unstructured, field string) {
	delete(next.Object, field)
	if v, ok := live.Object[field]; ok {
		next.Object[field] = runtime.DeepCopyJSONValue(v)
	}
}

// manage notes what an update changed of an object, or of its status.
func manage(live, next *unstructured.Unstructured, by, subresource string) *unstructured.Unstructured {
	managed, err := manager(next.GroupVersionKind(), subresource).Update(live.DeepCopy(), next, by)
	if err != nil {
		panic(fmt.Errorf("cannot manage fields: %w", err))
	}
	return content(managed)
}

// content is an object as the field manager returns it: as it was given.
func content(obj runtime.Object) *unstructured.Unstructured {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		panic(fmt.Errorf("not an unstructured object: %T", obj))
	}
	return u
}

func empty(like *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(like.GroupVersionKind())
	return u
}

// timeless is an object without when its fields were written.
func timeless(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy()
	entries := out.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	out.SetManagedFields(entries)
	return out.Object
}
