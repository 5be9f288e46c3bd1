// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crosswatch-io/crosswatch/test/soak"
)

// anything is the schema of whatever is no XR.
var anything = &apiextensionsv1.JSONSchemaProps{
	Type: "object",
	Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
		Type:       "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"value": {Type: "string"}, "next": {Type: "string"}},
	}},
}

func definitionOf(kind string) *apiextensionsv1.CustomResourceDefinition {
	gvk := soak.GVK(kind)
	scope := apiextensionsv1.NamespaceScoped
	if kind == soak.ClusterKind {
		scope = apiextensionsv1.ClusterScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: soak.Resource(kind) + "." + gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: soak.Resource(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
			}},
		},
	}
}

// grantOf is what lets the operator use a kind.
func grantOf(kind string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "soak-" + soak.Resource(kind), Labels: map[string]string{"crosswatch.io/aggregate-to-crosswatch": "true"}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{soak.GVK(kind).Group}, Resources: []string{soak.Resource(kind)},
			Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
		}},
	}
}

// kinds are those that can be taken away and given back.
type kinds struct {
	admin    client.Client
	objects  dynamic.Interface // the admin's
	operator dynamic.Interface // what the operator's ServiceAccount may
	// withdrawn and forbidden are the kinds that nobody can read.
	withdrawn, forbidden map[string]bool
}

func (k *kinds) unreadable(kind string) bool { return k.withdrawn[kind] || k.forbidden[kind] }

// define makes kinds be served, which takes about as long for many as for one.
func (k *kinds) define(ctx context.Context, kinds ...string) error {
	for _, kind := range kinds {
		if err := k.admin.Create(ctx, definitionOf(kind)); err != nil {
			return err
		}
		delete(k.withdrawn, kind)
	}
	for _, kind := range kinds {
		if err := k.served(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// served waits until a kind is served.
func (k *kinds) served(ctx context.Context, kind string) error {
	return eventually("kind "+kind+" to be served", func() (bool, error) {
		_, err := k.list(ctx, k.objects, kind)
		return err == nil, client.IgnoreNotFound(err)
	})
}

// withdraw takes a kind away, with its objects. API servers take minutes over one
// that nobody has listed.
func (k *kinds) withdraw(ctx context.Context, kind string) (objects int, err error) {
	there, err := k.list(ctx, k.objects, kind)
	if err != nil {
		return 0, err
	}
	k.withdrawn[kind] = true
	definition := definitionOf(kind)
	if err := k.admin.Delete(ctx, definition); err != nil {
		return 0, err
	}
	return len(there), eventually("kind "+kind+" to be gone", func() (bool, error) {
		err := k.admin.Get(ctx, client.ObjectKeyFromObject(definition), definition)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// permit lets the operator use kinds.
func (k *kinds) permit(ctx context.Context, kinds ...string) error {
	for _, kind := range kinds {
		if err := k.admin.Create(ctx, grantOf(kind)); err != nil {
			return err
		}
		delete(k.forbidden, kind)
	}
	return nil
}

// forbid takes that away, and returns when it has its effect.
func (k *kinds) forbid(ctx context.Context, kind string) error {
	k.forbidden[kind] = true
	if err := k.admin.Delete(ctx, grantOf(kind)); err != nil {
		return err
	}
	return eventually("kind "+kind+" to be forbidden", func() (bool, error) {
		_, err := k.list(ctx, k.operator, kind)
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
}

// list lists a kind as the API server has it in memory.
func (*kinds) list(ctx context.Context, client dynamic.Interface, kind string) ([]*unstructured.Unstructured, error) {
	return list(ctx, client, kind, "0")
}

// now lists a kind as it is now.
func (k *kinds) now(ctx context.Context, kind string) ([]*unstructured.Unstructured, error) {
	return list(ctx, k.objects, kind, "")
}

func list(ctx context.Context, client dynamic.Interface, kind, version string) ([]*unstructured.Unstructured, error) {
	list, err := client.Resource(resourceOf(kind)).List(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return nil, fmt.Errorf("cannot list kind %s: %w", kind, err)
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}
