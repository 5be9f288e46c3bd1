// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kindOf is the kind that the CRD defines, in one of its versions.
func kindOf(crd *apiextensionsv1.CustomResourceDefinition, version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}
}

// define returns a CRD of that kind, in an API group of its own, which serves the
// versions and stores the first.
func define(kind string, scope apiextensionsv1.ResourceScope, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	plural := strings.ToLower(kind) + "s"
	group := plural + ".example.org"
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
		},
	}
	for i, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &preserve,
			}},
		})
	}
	return crd
}

// install creates such a CRD, until the test ends, and tells the engine, as the
// operator does. That of an earlier test may be just about to go.
func (w *world) install(kind string, scope apiextensionsv1.ResourceScope, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	crd := define(kind, scope, versions...)
	var err error
	w.eventually(func() bool {
		err = w.client.Create(w.t.Context(), crd)
		return !apierrors.IsAlreadyExists(err)
	}, func() string { return err.Error() })
	must(w.t, err)
	w.t.Cleanup(func() {
		must(w.t, client.IgnoreNotFound(w.client.Delete(context.WithoutCancel(w.t.Context()), define(kind, scope))))
	})
	w.tell(crd)
	return crd
}

// change changes the CRD as it is stored, and tells the engine.
func (w *world) change(crd *apiextensionsv1.CustomResourceDefinition, change func()) {
	w.t.Helper()
	w.eventually(func() bool {
		must(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(crd), crd))
		change()
		return w.client.Update(w.t.Context(), crd) == nil
	}, func() string { return "the CRD can't be changed" })
	w.tell(crd)
}

// uninstall deletes the CRD and waits until it is gone.
func (w *world) uninstall(crd *apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	must(w.t, w.client.Delete(w.t.Context(), crd))
	w.eventually(func() bool {
		return apierrors.IsNotFound(w.client.Get(w.t.Context(), client.ObjectKeyFromObject(crd), crd))
	}, func() string { return "the CRD is not gone" })
}

func (w *world) tell(crd *apiextensionsv1.CustomResourceDefinition) {
	w.engine.KindChanged(schema.ParseGroupResource(crd.Name))
}

// createSoon creates an object of a kind that may not be served yet.
func (w *world) createSoon(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	w.t.Helper()
	u := object(gvk, namespace, name)
	var err error
	w.eventually(func() bool {
		err = w.client.Create(w.t.Context(), u)
		return err == nil
	}, func() string { return err.Error() })
	return u
}
