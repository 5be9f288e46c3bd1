// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

// define makes an XRD of namespaced XRs whose spec takes any field, waits until
// it is Established, and returns the XR kind. It is gone when the test is.
func (w *world) define(kind string) schema.GroupVersionKind {
	w.t.Helper()
	return w.defineAll(kind)[0]
}

// defineAll defines several kinds in about the time that one takes.
func (w *world) defineAll(kinds ...string) []schema.GroupVersionKind {
	w.t.Helper()
	for _, kind := range kinds {
		w.create(definition(kind, v1.ScopeNamespaced, anyFields))
	}
	defined := make([]schema.GroupVersionKind, 0, len(kinds))
	for _, kind := range kinds {
		defined = append(defined, w.established(kind))
	}
	return defined
}

// established waits until the XRD of a kind is Established, and returns the kind.
func (w *world) established(kind string) schema.GroupVersionKind {
	w.t.Helper()
	w.condition(definition(kind, v1.ScopeNamespaced, anyFields), "Established", "True", "WatchingCompositeResource")
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// The kinds that tests share.
const (
	sample    = "Sample"
	bystander = "Bystander"
)

// shared returns a kind like those of define, but one that tests share: the first
// that asks for it has it made, and it stays. For a new kind, the API server
// answers the first list a second late and the first creation two, which is no
// matter to most tests. Those to which a kind's beginning or end matters, its
// grants or its DependencyWatchStatus, define their own. That it is Established
// may be what the operator of an earlier test said: that this test's is ready
// for XRs shows when it is done with the first.
func (w *world) shared(kind string) schema.GroupVersionKind {
	w.t.Helper()
	if !cluster.shared.Has(kind) {
		w.must(w.admin.Create(w.t.Context(), definition(kind, v1.ScopeNamespaced, anyFields)))
		cluster.shared.Insert(kind)
	}
	return w.established(kind)
}

// unshare deletes the kinds that tests share, until a test asks for them again.
func (w *world) unshare() {
	w.t.Helper()
	for _, kind := range sets.List(cluster.shared) {
		w.remove(definition(kind, v1.ScopeNamespaced, anyFields))
		cluster.shared.Delete(kind)
	}
}

// outgrow waits until a kind is so old that the API server creates the first
// object of it at once, which is sooner than it would otherwise: it keeps whoever
// comes earlier waiting for all of that time.
func (w *world) outgrow(gvk schema.GroupVersionKind) {
	w.t.Helper()
	const youth = 2 * time.Second
	crd := &apiextensionsv1.CustomResourceDefinition{}
	w.must(w.admin.Get(w.t.Context(), client.ObjectKey{Name: strings.ToLower(gvk.Kind) + "s." + gvk.Group}, crd))
	i := slices.IndexFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established
	})
	w.eventually(gvk.Kind+" to be no longer new", func() (bool, string) {
		age := time.Since(crd.Status.Conditions[i].LastTransitionTime.Time)
		return age > youth, age.String()
	})
}

const anyFields = `{"type":"object","properties":{
	"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
	"status":{"type":"object","properties":{
		"asked":{"type":"boolean"},"value":{"type":"string"},"colored":{"type":"string"},"reading":{"type":"string"}}}}}`

func definition(kind string, scope v1.Scope, openAPI string) *v1.CompositeResourceDefinition {
	return installation.Definition(group, kind, scope, openAPI)
}
