// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositions,verbs=list;watch
// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositionrevisions,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositionrevisions/status,verbs=patch

// An owner reference that blocks the owner's deletion takes this right where the API server enforces it.
// +kubebuilder:rbac:groups=apiextensions.crossplane.io,resources=compositions/finalizers,verbs=update

const (
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// Config is what the controllers work with. All of it is required.
type Config struct {
	// Client reads from the cache, and writes.
	Client client.Client
	// Live reads revisions from the API server before one is numbered.
	Live client.Reader
}

func (c Config) validate() error {
	switch {
	case c.Client == nil:
		return errors.New("cannot reconcile Compositions without a client")
	case c.Live == nil:
		return errors.New("cannot reconcile Compositions without a live reader")
	}
	return nil
}

// Setup adds the controllers of Compositions and of CompositionRevisions to the manager.
func Setup(mgr ctrl.Manager, c Config) error {
	if err := c.validate(); err != nil {
		return err
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("composition").
		For(&v1.Composition{}).
		Owns(&v1.CompositionRevision{}).
		WithOptions(options()).
		Complete(&reconciler{client: c.Client, live: c.Live})
	if err != nil {
		return fmt.Errorf("cannot set up the controller of Compositions: %w", err)
	}

	v := &validator{client: c.Client}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("compositionrevision").
		For(&v1.CompositionRevision{}).
		Watches(&pkgv1.FunctionRevision{}, handler.EnqueueRequestsFromMapFunc(v.usersOf)).
		WithOptions(options()).
		Complete(v)
	if err != nil {
		return fmt.Errorf("cannot set up the controller of CompositionRevisions: %w", err)
	}
	return nil
}

func options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: 2,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay),
	}
}
