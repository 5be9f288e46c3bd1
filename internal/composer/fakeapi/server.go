// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is an API server in memory, for tests of what sends
// server-side applies. Fields are managed by the API server's own code, so that
// ownership, conflicts and removals are real; there is no validation, admission
// or watch, but for what a test puts into the hooks.
package fakeapi

import (
	"reflect"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// A Write is a request that could have changed something.
type Write struct{ Verb, Resource, Name, Subresource string }

// A Server holds objects. It is a dynamic client of itself, with the verbs that
// the operator uses, and safe for concurrent use.
type Server struct {
	// Refuse is asked about each write; its error is the answer.
	Refuse func(w Write, obj *unstructured.Unstructured) error
	// Normalize does what a kind's defaulting and pruning do. It changes obj.
	Normalize func(obj map[string]any)

	mu      sync.Mutex
	objects map[key]*unstructured.Unstructured
	version int
	writes  []Write
}

type key struct {
	resource schema.GroupResource
	name     types.NamespacedName
}

// New returns an empty server.
func New() *Server { return &Server{objects: map[key]*unstructured.Unstructured{}} }

var _ dynamic.Interface = &Server{}

// Resource implements dynamic.Interface.
func (s *Server) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return &client{server: s, resource: resource}
}

// Writes returns the writes since the last call.
func (s *Server) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()

	writes := s.writes
	s.writes = nil
	return writes
}

// Get returns a copy of the object, nil if there is none.
func (s *Server) Get(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()

	obj := s.objects[keyOf(resource, namespace, name)]
	if obj == nil {
		return nil
	}
	return obj.DeepCopy()
}

// Edit changes the object, or creates it, as some other client's update would.
func (s *Server) Edit(resource schema.GroupVersionResource, obj *unstructured.Unstructured, by string, edit func(obj map[string]any)) {
	s.edit(resource, obj, by, "", edit)
}

// EditStatus changes the object's status as some other client's update would.
func (s *Server) EditStatus(resource schema.GroupVersionResource, obj *unstructured.Unstructured, by string, edit func(obj map[string]any)) {
	s.edit(resource, obj, by, "status", edit)
}

func (s *Server) edit(
	resource schema.GroupVersionResource, obj *unstructured.Unstructured, by, subresource string, edit func(obj map[string]any),
) {
	s.mu.Lock()
	defer s.mu.Unlock()

	k := keyOf(resource, obj.GetNamespace(), obj.GetName())
	live := s.objects[k]
	if live == nil {
		live = empty(obj)
	}
	next := live.DeepCopy()
	next.SetName(obj.GetName())
	next.SetNamespace(obj.GetNamespace())
	edit(next.Object)
	s.put(k, live, manage(live, next, by, subresource))
}

// Remove deletes the object at once, as the end of any deletion does.
func (s *Server) Remove(resource schema.GroupVersionResource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.objects, keyOf(resource, namespace, name))
}

// put stores what a write came to. A write that changes nothing is none.
func (s *Server) put(k key, live, next *unstructured.Unstructured) *unstructured.Unstructured {
	if s.Normalize != nil {
		s.Normalize(next.Object)
	}
	if live.GetUID() == "" {
		s.version++
		next.SetUID(types.UID("uid-" + strconv.Itoa(s.version)))
		next.SetCreationTimestamp(epoch)
	}
	if live.GetUID() != "" && reflect.DeepEqual(timeless(live), timeless(next)) {
		return live
	}
	s.version++
	next.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[k] = next
	return next
}

func (s *Server) refuse(w Write, obj *unstructured.Unstructured) error {
	s.writes = append(s.writes, w)
	if s.Refuse == nil {
		return nil
	}
	return s.Refuse(w, obj)
}

func (s *Server) find(resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	obj := s.objects[keyOf(resource, namespace, name)]
	if obj == nil {
		return nil, apierrors.NewNotFound(resource.GroupResource(), name)
	}
	return obj, nil
}

func keyOf(resource schema.GroupVersionResource, namespace, name string) key {
	return key{resource: resource.GroupResource(), name: types.NamespacedName{Namespace: namespace, Name: name}}
}
