// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// A resource is what the pipeline desires under one name.
type resource struct {
	name   string
	ref    dependency.Reference
	object *unstructured.Unstructured
	ready  bool

	objects Objects // by admit; nil if it was not admitted
	err     error   // by admit and apply
}

// render turns what the functions desire into whole intents. What can't be
// turned into one is the functions' fault, and ends the run before anything is
// changed.
func (r *run) render(context.Context) error {
	shown := r.shown()
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(r.desired)) {
		one, err := r.renderOne(name, r.desired[name], shown[name])
		if err != nil {
			faults = append(faults, fmt.Errorf("resource %q: %w", name, err))
			continue
		}
		r.resources = append(r.resources, one)
	}
	return errors.Join(faults...)
}

func (r *run) renderOne(name string, desired *fnv1.Resource, observed *observation) (*resource, error) {
	object := &unstructured.Unstructured{Object: toMap(desired.GetResource())}
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, errors.New("it has no apiVersion or no kind")
	}
	if err := r.nameOne(object, name, observed); err != nil {
		return nil, err
	}
	r.placeOne(object, name)
	if err := r.markOne(object, name); err != nil {
		return nil, err
	}
	return &resource{
		name: name,
		ref: dependency.Reference{
			GVK: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		},
		object: object,
		ready:  desired.GetReady() == fnv1.Ready_READY_TRUE,
	}, nil
}

// nameOne gives the object its name: its own, else that of what it is observed
// as, else a derived one.
func (r *run) nameOne(object *unstructured.Unstructured, name string, observed *observation) error {
	if object.GetName() == "" {
		if observed != nil && observed.ref.GVK.GroupKind() == object.GroupVersionKind().GroupKind() {
			object.SetName(observed.ref.Name)
		} else {
			object.SetName(xr.ComposedName(r.in.XR.GetUID(), name, r.prefix(object)))
		}
	}
	// What else makes a name valid depends on the kind, and is the API server's to say.
	if faults := content.IsPathSegmentName(object.GetName()); len(faults) > 0 {
		return fmt.Errorf("its name %q is invalid: it %s", object.GetName(), faults[0])
	}
	if len(object.GetName()) > validation.DNS1123SubdomainMaxLength {
		return fmt.Errorf("its name %q is longer than %d characters", object.GetName(), validation.DNS1123SubdomainMaxLength)
	}
	return nil
}

func (r *run) prefix(object *unstructured.Unstructured) string {
	if prefix := object.GetGenerateName(); prefix != "" {
		return prefix
	}
	return r.in.XR.CompositeLabel() + "-"
}

// placeOne keeps what a namespaced XR composes in the XR's namespace.
func (r *run) placeOne(object *unstructured.Unstructured, name string) {
	if r.in.Scope != v1.ScopeNamespaced {
		return
	}
	if namespace := object.GetNamespace(); namespace != "" && namespace != r.key.Namespace {
		r.warn(ReasonNamespaceOverride, "resource %q is desired in namespace %q, and composed in the XR's namespace %q",
			name, namespace, r.key.Namespace)
	}
	object.SetNamespace(r.key.Namespace)
}

// markOne adds what ties the object to the XR, and drops what only the API
// server can say: functions like to return what they observed.
func (r *run) markOne(object *unstructured.Unstructured, name string) error {
	metadata, ok := object.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("its metadata is no object")
	}
	for _, field := range []string{
		"generateName", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields", "selfLink",
	} {
		delete(metadata, field)
	}
	if err := setIn(metadata, "labels", v1.LabelComposite, r.in.XR.CompositeLabel()); err != nil {
		return err
	}
	if err := setIn(metadata, "annotations", v1.AnnotationCompositionResourceName, name); err != nil {
		return err
	}
	return r.own(object)
}

// setIn sets a label or an annotation and leaves the others as they are, also
// where they have values that the API server will refuse.
func setIn(metadata map[string]any, field, key, value string) error {
	entries, ok := metadata[field].(map[string]any)
	if !ok && metadata[field] != nil {
		return fmt.Errorf("its metadata.%s is no map", field)
	}
	if entries == nil {
		entries = map[string]any{}
	}
	entries[key] = value
	metadata[field] = entries
	return nil
}

// own makes the XR the controlling owner, beside other owners that the functions
// name.
func (r *run) own(object *unstructured.Unstructured) error {
	x := r.in.XR
	owners := slices.DeleteFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == x.GetUID() })
	for _, o := range owners {
		if ptr.Deref(o.Controller, false) {
			return fmt.Errorf("it names %s %q as its controller", o.Kind, o.Name)
		}
	}
	object.SetOwnerReferences(append(owners, metav1.OwnerReference{
		APIVersion:         x.GetAPIVersion(),
		Kind:               x.GetKind(),
		Name:               x.GetName(),
		UID:                x.GetUID(),
		Controller:         ptr.To(true),
		BlockOwnerDeletion: ptr.To(true),
	}))
	return nil
}
