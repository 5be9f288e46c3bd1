// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/composer"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/function"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// controlled is an engine's controller as a session: the engine returns its own
// informers, and those who use them say what they need of them.
type controlled struct{ *engine.Controller }

var _ session = controlled{}

func (c controlled) Require(ctx context.Context, xr types.NamespacedName, r dependency.Requirement) (function.Reader, error) {
	informer, err := c.Controller.Require(ctx, xr, r)
	if err != nil {
		return nil, err
	}
	return objects{informer, c.Controller, xr, r.Reference}, nil
}

func (c controlled) Depend(ctx context.Context, xr types.NamespacedName, composed dependency.Reference) (composer.Objects, error) {
	informer, err := c.Controller.Depend(ctx, xr, composed)
	if err != nil {
		return nil, err
	}
	return objects{informer, c.Controller, xr, composed}, nil
}

func (c controlled) Resource() (schema.GroupVersionResource, bool) {
	informer := c.Informer()
	if informer == nil {
		return schema.GroupVersionResource{}, false
	}
	return informer.Kind().Resource, true
}

// objects are what an XR reads of a kind because of a reference. The controller
// hears what the reference meant.
type objects struct {
	*store.Informer

	controller *engine.Controller
	xr         types.NamespacedName
	reference  dependency.Reference
}

func (o objects) Get(namespace, name string) *unstructured.Unstructured {
	found := o.Informer.Get(namespace, name)
	if name == o.reference.Name && namespace == o.reference.Namespace {
		o.controller.Saw(o.xr, o.reference, found)
	}
	return found
}

func (o objects) List(namespace string, match map[string]string) []*unstructured.Unstructured {
	found := o.Informer.List(namespace, match)
	o.controller.Saw(o.xr, o.reference, found...)
	return found
}

func (o objects) Resource() schema.GroupVersionResource { return o.Kind().Resource }
func (o objects) Namespaced() bool                      { return o.Kind().Namespaced }
