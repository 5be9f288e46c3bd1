// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
	"github.com/crosswatch-io/crosswatch/internal/composer"
)

// +kubebuilder:rbac:groups=apps,namespace=crosswatch-system,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",namespace=crosswatch-system,resources=services;serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=pkg.crossplane.io,resources=deploymentruntimeconfigs,verbs=list;watch

// fieldOwner of what is applied to the objects that run functions.
const fieldOwner = "crosswatch.io/function-runtime"

// configHashLength is how much of the hash of a configuration's name a field owner has.
const configHashLength = 12

// defaultConfigName is that of the configuration of Functions that name none.
const defaultConfigName = "default"

// objects applies what runs functions in the operator's namespace.
type objects struct {
	client    client.Client
	live      client.Reader
	applier   *composer.Applier
	namespace string
}

// An owner controls objects.
type owner struct {
	kind   schema.GroupVersionKind
	object client.Object
}

var errNoConfig = errors.New("does not exist")

// configOf returns what configures the revision's runtime.
func (o *objects) configOf(ctx context.Context, revision *pkgv1.FunctionRevision) (*v1beta1.DeploymentRuntimeConfig, error) {
	name := configName(revision)
	config := &v1beta1.DeploymentRuntimeConfig{}
	err := o.client.Get(ctx, types.NamespacedName{Name: name}, config)
	switch {
	case apierrors.IsNotFound(err) && name == defaultConfigName:
		return config, nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("DeploymentRuntimeConfig %q of spec.runtimeConfigRef %w: create it, or name another", name, errNoConfig)
	case err != nil:
		return nil, fmt.Errorf("cannot get DeploymentRuntimeConfig %q: %w", name, err)
	}
	return config, nil
}

// blamed names the configuration in the error of an apply of what was made of it. What the operator adds the API server accepts; what
// it refuses is what people configured.
func blamed(err error, config *v1beta1.DeploymentRuntimeConfig) error {
	if config.Name == "" || !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return err
	}
	return fmt.Errorf("%w (DeploymentRuntimeConfig %q)", err, config.Name)
}

// configuredBy returns the revisions, made by Functions, that refer to the configuration of that name.
func (o *objects) configuredBy(ctx context.Context, name string) []pkgv1.FunctionRevision {
	return slices.DeleteFunc(o.revisions(ctx), func(r pkgv1.FunctionRevision) bool { return configName(&r) != name })
}

// revisions returns all that Functions made.
func (o *objects) revisions(ctx context.Context) []pkgv1.FunctionRevision {
	list := &pkgv1.FunctionRevisionList{}
	if err := o.client.List(ctx, list); err != nil {
		// The cache can't be read only when it stops, and the process with it.
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list FunctionRevisions")
		return nil
	}
	return slices.DeleteFunc(list.Items, func(r pkgv1.FunctionRevision) bool { return functionOwning(&r) == "" })
}

func configName(revision *pkgv1.FunctionRevision) string {
	if ref := revision.Spec.RuntimeConfigRef; ref != nil {
		return ref.Name
	}
	return defaultConfigName
}

// apply brings an object of the operator's namespace to what is wanted, on the owner's behalf, and fills live, which must be empty
// and of the same kind, with the object as it was seen before; it stays empty if there was none. Nothing is sent if nothing
// differs. An object that somebody else made is an error, and left alone.
func (o *objects) apply(ctx context.Context, by owner, want, live client.Object) error {
	want.SetNamespace(o.namespace)
	want.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(by.object, by.kind)})
	seen, err := o.find(ctx, by, want, live)
	if err != nil {
		return err
	}
	return o.send(ctx, by, fieldOwner, want, seen)
}

// share is apply for a ServiceAccount that is nobody's alone: it may have been there, and it stays. What configurations of different
// names say of it adds up. One that was there is not labelled, so that it stays in its owner's care, and out of the cache.
func (o *objects) share(ctx context.Context, by owner, config string, want *corev1.ServiceAccount) error {
	want.SetNamespace(o.namespace)
	seen := &corev1.ServiceAccount{}
	err := o.client.Get(ctx, client.ObjectKeyFromObject(want), seen)
	if apierrors.IsNotFound(err) {
		err = o.live.Get(ctx, client.ObjectKeyFromObject(want), seen)
	}
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return fmt.Errorf("cannot get %s: %w", describe(want), err)
	}
	if isNew || seen.Labels[LabelManagedBy] == ManagedBy {
		metav1.SetMetaDataLabel(&want.ObjectMeta, LabelManagedBy, ManagedBy)
	}
	if isNew {
		return o.send(ctx, by, fieldOwnerOf(config), want, nil)
	}
	return o.send(ctx, by, fieldOwnerOf(config), want, seen)
}

// fieldOwnerOf is who applies what a configuration says of an object that others may configure, too. A configuration's name may be
// longer than a field owner's.
func fieldOwnerOf(config string) string {
	sum := sha256.Sum256([]byte(config))
	return fieldOwner + "/" + hex.EncodeToString(sum[:])[:configHashLength]
}

// find returns live, filled, or nil if the object isn't there. The cache has only what carries our label: what it lacks may be
// somebody else's.
func (o *objects) find(ctx context.Context, by owner, want, live client.Object) (client.Object, error) {
	key := client.ObjectKeyFromObject(want)
	err := o.client.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		other := live.DeepCopyObject().(client.Object)
		if err = o.live.Get(ctx, key, other); apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err == nil && metav1.IsControlledBy(other, by.object) {
			return other, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get %s: %w", describe(want), err)
	}
	if !metav1.IsControlledBy(live, by.object) {
		return nil, fmt.Errorf("%s is there already and is not controlled by %s %q: delete it, or rename the Function",
			describe(want), by.kind.Kind, by.object.GetName())
	}
	return live, nil
}

func (o *objects) send(ctx context.Context, by owner, fields string, want, seen client.Object) error {
	gvk, err := apiutil.GVKForObject(want, o.client.Scheme())
	if err != nil {
		return err
	}
	mapping, err := o.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("cannot find the resource of %s: %w", gvk.Kind, err)
	}
	intent := composer.Intent{
		XR:         types.UID(by.kind.Kind + "/" + by.object.GetName()),
		Resource:   mapping.Resource,
		FieldOwner: fields,
	}
	if intent.Object, err = intentOf(want, gvk); err != nil {
		return err
	}
	if seen != nil {
		if intent.Live, err = untyped(seen, gvk); err != nil {
			return err
		}
	}
	if _, _, err := o.applier.Apply(ctx, intent); err != nil {
		return fmt.Errorf("cannot apply %s: %w", describe(want), err)
	}
	return nil
}

// forget drops what is remembered of applies on behalf of an owner that is gone.
func (o *objects) forget(kind schema.GroupVersionKind, name string) {
	o.applier.Forget(types.UID(kind.Kind + "/" + name))
}

// remove deletes the object of that name, if the owner controls it.
func (o *objects) remove(ctx context.Context, by owner, object client.Object, name string) error {
	err := o.client.Get(ctx, types.NamespacedName{Namespace: o.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(object, by.object) {
		return nil
	}
	if err == nil {
		uid := object.GetUID()
		err = client.IgnoreNotFound(o.client.Delete(ctx, object, client.Preconditions{UID: &uid}))
	}
	if err != nil {
		return fmt.Errorf("cannot delete %s: %w", describe(object), apifault.Stable(err))
	}
	return nil
}

// intentOf returns the object without what the API server alone writes.
func intentOf(object client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	u, err := untyped(object, gvk)
	if err != nil {
		return nil, err
	}
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "creationTimestamp")
	return u, nil
}

func untyped(object client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s: %w", describe(object), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// describe names an object of the operator's namespace.
func describe(object client.Object) string {
	return fmt.Sprintf("%s %q in namespace %q", kindOf(object), object.GetName(), object.GetNamespace())
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *corev1.Service:
		return "Service"
	case *corev1.ServiceAccount:
		return "ServiceAccount"
	case *corev1.Secret:
		return "Secret"
	}
	return "Deployment"
}
