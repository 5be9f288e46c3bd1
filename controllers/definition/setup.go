// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositeresourcedefinitions,verbs=list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositeresourcedefinitions/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch;create;patch;delete

// An owner reference that blocks the owner's deletion takes this right where the API server enforces it.
// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositeresourcedefinitions/finalizers,verbs=update

const (
	concurrency   = 5
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// Setup adds the controllers of XRDs, and of the ClusterRoles whose rules follow from them, to the manager. kindChanged is called,
// often and concurrently, when a CRD comes, changes or goes, with its group and plural: the API server may serve its kind otherwise
// than before.
func Setup(mgr ctrl.Manager, c Config, kindChanged func(crd schema.GroupResource)) error {
	if err := c.validate(); err != nil {
		return err
	}
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("cannot set up discovery for the controller of XRDs: %w", err)
	}
	a := newAccess(c.Client, newVacancies(api.RESTClient(), c.Clock), c.Roles, c.Clock)
	if err := setupAccess(mgr, a, c.Roles); err != nil {
		return fmt.Errorf("cannot set up the controller of ClusterRoles: %w", err)
	}
	r := &reconciler{client: c.Client, live: c.Live, metadata: c.Metadata, engine: c.Engine, access: a, controller: c.Controller}
	onCRD := func(_ context.Context, crd client.Object) []reconcile.Request {
		kindChanged(schema.ParseGroupResource(crd.GetName()))
		return ofSameName(crd)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("definition").
		For(&v1.CompositeResourceDefinition{}).
		WatchesMetadata(&extv1.CustomResourceDefinition{}, handler.EnqueueRequestsFromMapFunc(onCRD)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: rateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up the controller of XRDs: %w", err)
	}
	return nil
}

// setupAccess has all roles looked at when an XRD, a CRD or one of the roles changes.
func setupAccess(mgr ctrl.Manager, a *access, caches map[string]cache.Cache) error {
	anyChange := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} }
	b := ctrl.NewControllerManagedBy(mgr).
		Named("access").
		Watches(&v1.CompositeResourceDefinition{}, handler.EnqueueRequestsFromMapFunc(anyChange)).
		WatchesMetadata(&extv1.CustomResourceDefinition{}, handler.EnqueueRequestsFromMapFunc(anyChange)).
		WithOptions(controller.Options{RateLimiter: rateLimiter()})
	for _, c := range caches {
		b = b.WatchesRawSource(source.Kind[client.Object](c, &rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(anyChange)))
	}
	return b.Complete(a)
}

func rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay)
}

// ofSameName maps a CRD to the XRD that may define it. The owner is of no use here: an XRD must also learn that a CRD which it
// does not control is out of its way.
func ofSameName(crd client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: crd.GetName()}}}
}
