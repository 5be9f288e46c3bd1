// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// client offers the verbs that the operator uses. Another one panics.
type client struct {
	dynamic.NamespaceableResourceInterface
	server    *Server
	resource  schema.GroupVersionResource
	namespace string
}

func (c *client) Namespace(namespace string) dynamic.ResourceInterface {
	return &client{server: c.server, resource: c.resource, namespace: namespace}
}

func (c *client) write(verb, name string, subresources []string) Write {
	return Write{Verb: verb, Resource: c.resource.Resource, Name: name, Subresource: strings.Join(subresources, "/")}
}

// Apply implements dynamic.ResourceInterface.
func (c *client) Apply(
	_ context.Context, name string, obj *unstructured.Unstructured, o metav1.ApplyOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()

	w := c.write("apply", name, subresources)
	if err := s.refuse(w, obj); err != nil {
		return nil, err
	}
	k := keyOf(c.resource, c.namespace, name)
	live := s.objects[k]
	switch {
	case live == nil && w.Subresource != "":
		return nil, apierrors.NewNotFound(k.resource, name)
	case live == nil && obj.GetUID() != "":
		return nil, apierrors.NewConflict(k.resource, name, fmt.Errorf("there is no object with UID %s", obj.GetUID()))
	case live != nil && obj.GetUID() != "" && obj.GetUID() != live.GetUID():
		return nil, apierrors.NewConflict(k.resource, name, fmt.Errorf("the UID is %s", live.GetUID()))
	case live == nil:
		live = empty(obj)
	}
	next, err := merge(live, obj, o, w.Subresource)
	if err != nil {
		return nil, err
	}
	return s.put(k, live, next).DeepCopy(), nil
}

// Delete implements dynamic.ResourceInterface: an object with finalizers, or
// whose dependants go first, is only marked.
func (c *client) Delete(_ context.Context, name string, o metav1.DeleteOptions, _ ...string) error {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()

	live, err := s.find(c.resource, c.namespace, name)
	if refused := s.refuse(c.write("delete", name, nil), live); refused != nil {
		return refused
	}
	if err != nil {
		return err
	}
	if o.Preconditions != nil && *o.Preconditions.UID != live.GetUID() {
		return apierrors.NewConflict(c.resource.GroupResource(), name, fmt.Errorf("the UID is %s", live.GetUID()))
	}
	next := live.DeepCopy()
	next.SetDeletionTimestamp(&epoch)
	s.put(keyOf(c.resource, c.namespace, name), live, next)
	return nil
}

// Patch implements dynamic.ResourceInterface, for merge patches of metadata.
func (c *client) Patch(
	_ context.Context, name string, _ types.PatchType, data []byte, o metav1.PatchOptions, _ ...string,
) (*unstructured.Unstructured, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()

	live, err := s.find(c.resource, c.namespace, name)
	if refused := s.refuse(c.write("patch", name, nil), live); refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	var patch struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	if v := patch.Metadata.ResourceVersion; v != "" && v != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(c.resource.GroupResource(), name, fmt.Errorf("the version is %s", live.GetResourceVersion()))
	}
	next := live.DeepCopy()
	next.SetFinalizers(patch.Metadata.Finalizers)
	k := keyOf(c.resource, c.namespace, name)
	next = s.put(k, live, manage(live, next, o.FieldManager, ""))
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		delete(s.objects, k)
	}
	return next.DeepCopy(), nil
}
