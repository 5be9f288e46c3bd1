// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// +kubebuilder:rbac:groups=pkg.crossplane.io,resources=functions;functionrevisions,verbs=list;watch
// +kubebuilder:rbac:groups="",namespace=crosswatch-system,resources=secrets,resourceNames=crossplane-tls-client,verbs=list;watch

// Connections are open to functions.
type Connections interface {
	// Forget closes the function's connection once no call uses it any more.
	Forget(function string)
	// Remove does the same for a function that is no longer installed.
	Remove(function string)
}

// Config is what the controller works with. All of it is required.
type Config struct {
	// Client reads Functions from the cache.
	Client      client.Reader
	Connections Connections
}

type reconciler struct {
	client      client.Reader
	connections Connections
}

// Reconcile follows any change of the function of that name.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	err := r.client.Get(ctx, req.NamespacedName, &pkgv1.Function{})
	switch {
	case apierrors.IsNotFound(err):
		r.connections.Remove(req.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot read Function %q: %w", req.Name, err)
	}
	r.connections.Forget(req.Name)
	return reconcile.Result{}, nil
}

// Setup adds the controller of Functions to the manager.
func Setup(mgr ctrl.Manager, c Config) error {
	switch {
	case c.Client == nil:
		return errors.New("cannot reconcile Functions without a client")
	case c.Connections == nil:
		return errors.New("cannot reconcile Functions without connections")
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("function").
		For(&pkgv1.Function{}).
		Watches(&pkgv1.FunctionRevision{}, handler.EnqueueRequestsFromMapFunc(functionOf)).
		Complete(&reconciler{client: c.Client, connections: c.Connections})
	if err != nil {
		return fmt.Errorf("cannot set up the controller of Functions: %w", err)
	}
	return nil
}

// functionOf maps a FunctionRevision to its Function.
func functionOf(_ context.Context, revision client.Object) []reconcile.Request {
	name := revision.GetLabels()[pkgv1.LabelParentPackage]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}
