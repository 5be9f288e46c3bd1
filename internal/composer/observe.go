// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// An observation is an object that the XR refers to, and that is there.
type observation struct {
	// name of the resource in the desired state.
	name     string
	ref      dependency.Reference
	resource schema.GroupVersionResource
	// object is the informer's.
	object *unstructured.Unstructured
	// connection details, for functions.
	connection map[string][]byte
}

// observe reads what the XR refers to. An object that isn't there is not
// observed, nor is one that another owner controls.
func (r *run) observe(ctx context.Context) error {
	seen := map[identity]bool{}
	for _, reference := range r.referred() {
		if seen[identityOf(reference)] {
			continue
		}
		seen[identityOf(reference)] = true
		if err := r.observeOne(ctx, reference); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) observeOne(ctx context.Context, ref dependency.Reference) error {
	objects, err := r.in.Record.Depend(ctx, r.key, ref)
	if isUnserved(err) {
		return nil // what isn't served isn't there
	}
	if err != nil {
		return fmt.Errorf("cannot observe composed %s: %w", ref, err)
	}
	object := objects.Get(ref.Namespace, ref.Name)
	if object == nil || r.isForeign(object) {
		return nil
	}
	name := object.GetAnnotations()[v1.AnnotationCompositionResourceName]
	if name == "" {
		return nil
	}
	o := &observation{name: name, ref: ref, resource: objects.Resource(), object: object}
	if o.connection, err = r.connectionOf(ctx, o); err != nil {
		return err
	}
	r.observed = append(r.observed, o)
	return nil
}

// referred returns what the XR refers to. Users can write references, too: one
// that names no object would match any, so it is left out, here and when the
// references are written next.
func (r *run) referred() []dependency.Reference {
	var out []dependency.Reference
	for _, ref := range r.in.XR.ResourceRefs() {
		reference := r.referenceTo(ref)
		// An apiVersion that can't be parsed leaves no version.
		if reference.GVK.Version != "" && reference.GVK.Kind != "" && reference.Name != "" {
			out = append(out, reference)
		}
	}
	return out
}

func (r *run) referenceTo(ref xr.Ref) dependency.Reference {
	namespace := ref.Namespace
	if r.in.Scope == v1.ScopeNamespaced {
		namespace = r.key.Namespace
	}
	return dependency.Reference{
		GVK:       schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind),
		Namespace: namespace,
		Name:      ref.Name,
	}
}

// isForeign reports whether another owner controls the object.
func (r *run) isForeign(object *unstructured.Unstructured) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID != r.in.XR.GetUID()
}

func (r *run) isOurs(object *unstructured.Unstructured) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == r.in.XR.GetUID()
}

// shown returns, by name, the objects that functions are shown. Two have the
// same name while one takes the other's place: the one that stays is shown.
func (r *run) shown() map[string]*observation {
	out := make(map[string]*observation, len(r.observed))
	for _, o := range r.observed {
		if other, ok := out[o.name]; ok && other.object.GetDeletionTimestamp() == nil {
			continue
		}
		out[o.name] = o
	}
	return out
}

// identity tells objects apart. One object is served in several versions.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func identityOf(ref dependency.Reference) identity {
	return identity{kind: ref.GVK.GroupKind(), namespace: ref.Namespace, name: ref.Name}
}

func isUnserved(err error) bool {
	var watch *engine.WatchError
	return errors.As(err, &watch) && watch.State == engine.NotFound
}

func isWaiting(err error) bool {
	var watch *engine.WatchError
	return errors.As(err, &watch) && watch.Waiting()
}
