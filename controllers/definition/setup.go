// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositeresourcedefinitions,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositeresourcedefinitions/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositeresourcedefinitions/finalizers,verbs=update
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch;create;update;patch;delete

const (
	concurrency    = 5
	minRetryDelay  = 100 * time.Millisecond
	maxRetryDelay  = 30 * time.Second
	controllerName = "definition"
)

// Setup adds the controller of XRDs to the manager. kindsChanged is called, often and concurrently, when a CRD comes, changes or
// goes: the API server may serve other kinds then.
func Setup(mgr ctrl.Manager, c Config, kindsChanged func()) error {
	if err := c.validate(); err != nil {
		return err
	}
	r := &reconciler{client: c.Client, live: c.Live, metadata: c.Metadata, engine: c.Engine, controller: c.Controller}
	onCRD := func(_ context.Context, crd client.Object) []reconcile.Request {
		kindsChanged()
		return ofSameName(crd)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&v1.CompositeResourceDefinition{}).
		WatchesMetadata(&extv1.CustomResourceDefinition{}, handler.EnqueueRequestsFromMapFunc(onCRD)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up the controller of XRDs: %w", err)
	}
	return nil
}

// ofSameName maps a CRD to the XRD that may define it. The owner is of no use here: an XRD must also learn that a CRD which it
// does not control is out of its way.
func ofSameName(crd client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: crd.GetName()}}}
}
