// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
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

// Responses are what functions answered.
type Responses interface {
	// Forget what the function has answered so far.
	Forget(function string)
}

// closer closes connections.
type closer struct {
	client      client.Reader
	connections Connections
	// responses is nil if functions are run by somebody else. Otherwise what a function answered is forgotten, and the connection
	// to it closed, when its pods were replaced: those before them were perhaps configured otherwise, and serve for a while yet.
	responses Responses
}

// Reconcile follows any change of the function of that name.
func (r *closer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
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

func (r *closer) setUp(mgr ctrl.Manager) error {
	controller := ctrl.NewControllerManagedBy(mgr).
		Named("function").
		For(&pkgv1.Function{}).
		Watches(&pkgv1.FunctionRevision{}, byLabel(pkgv1.LabelParentPackage))
	if r.responses != nil {
		controller.Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.replaced), builder.WithPredicates(replacement))
	}
	return controller.Complete(r)
}

func (r *closer) replaced(_ context.Context, deployment client.Object) []reconcile.Request {
	requests := labelled(deployment, labelFunction)
	for _, req := range requests {
		r.responses.Forget(req.Name)
	}
	return requests
}

// replacement lets a Deployment's change through that ends the replacement of its pods.
var replacement = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, isDeployment := e.ObjectOld.(*appsv1.Deployment)
		after, areBoth := e.ObjectNew.(*appsv1.Deployment)
		return isDeployment && areBoth && !rolledOut(before) && rolledOut(after)
	},
}

// byLabel asks for a run of the Function that an object's label names.
func byLabel(label string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return labelled(object, label)
	})
}

func labelled(object client.Object, label string) []reconcile.Request {
	name := object.GetLabels()[label]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}
