// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// conflictRecheck is how long the cache is given to catch up.
const conflictRecheck = 100 * time.Millisecond

// Engine runs the controllers of XR kinds, each under the name of its XRD. Starting one that runs already, and stopping one that
// does not, does nothing.
type Engine interface {
	Start(name string, o engine.ControllerOptions) (*engine.Controller, error)
	Controller(name string) (running *engine.Controller, ok bool)
	Stop(name string)
	Remove(name string)
	// Watch describes the kind's watch.
	Watch(gvk schema.GroupVersionKind) engine.WatchInfo
}

// Config is what the reconciler of XRDs works with. All of it is required.
type Config struct {
	// Client reads XRDs, and metadata of CRDs, from the cache, and writes both and the rules of ClusterRoles.
	Client client.Client
	// Live reads CRDs from the API server: the cache keeps only their metadata.
	Live client.Reader
	// Metadata lists and deletes the XRs of XRDs that are being deleted. It needs no REST mapping, which would outlive a CRD that
	// is made again with another scope.
	Metadata metadata.Interface
	// Roles has for RoleComposites, RoleView and RoleEdit each the cache that keeps that one ClusterRole.
	Roles map[string]cache.Cache
	// Engine runs the XR controllers.
	Engine Engine
	// Controller describes the controller of the XR kind that the XRD defines.
	Controller func(xrd *v1.CompositeResourceDefinition) engine.ControllerOptions
	Clock      clock.PassiveClock
}

func (c Config) validate() error {
	switch {
	case c.Client == nil:
		return errors.New("cannot reconcile XRDs without a client")
	case c.Live == nil:
		return errors.New("cannot reconcile XRDs without a live reader")
	case c.Metadata == nil:
		return errors.New("cannot reconcile XRDs without a metadata client")
	case c.Engine == nil:
		return errors.New("cannot reconcile XRDs without an engine")
	case c.Controller == nil:
		return errors.New("cannot reconcile XRDs without XR controllers")
	case c.Clock == nil:
		return errors.New("cannot reconcile XRDs without a clock")
	}
	for _, name := range []string{RoleComposites, RoleView, RoleEdit} {
		if c.Roles[name] == nil {
			return fmt.Errorf("cannot reconcile XRDs without a cache of ClusterRole %q", name)
		}
	}
	return nil
}

type reconciler struct {
	client     client.Client
	live       client.Reader
	metadata   metadata.Interface
	engine     Engine
	access     *access
	controller func(xrd *v1.CompositeResourceDefinition) engine.ControllerOptions
}

// Reconcile brings the CRD and the XR controller of one XRD in line with it, and writes its status once, if that changed. A
// conflict is nobody's fault: the cache was behind, and will have caught up a moment later.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	xrd := &v1.CompositeResourceDefinition{}
	err := r.client.Get(ctx, req.NamespacedName, xrd)
	switch {
	case apierrors.IsNotFound(err):
		r.engine.Remove(req.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot get XRD %q: %w", req.Name, err)
	}
	result, err := r.reconcile(ctx, xrd)
	var denied *denial
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRecheck}, nil
	case errors.As(err, &denied):
		return reconcile.Result{RequeueAfter: denied.recheck()}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return result, nil
}

func (r *reconciler) reconcile(ctx context.Context, xrd *v1.CompositeResourceDefinition) (reconcile.Result, error) {
	if xrd.DeletionTimestamp == nil {
		if err := r.addFinalizer(ctx, xrd); err != nil {
			return reconcile.Result{}, err
		}
	}
	before := xrd.DeepCopy()
	result, err := r.run(ctx, xrd)
	return result, errors.Join(err, r.writeStatus(ctx, before, xrd))
}

func (r *reconciler) run(ctx context.Context, xrd *v1.CompositeResourceDefinition) (reconcile.Result, error) {
	crd := &extv1.CustomResourceDefinition{}
	err := r.live.Get(ctx, client.ObjectKey{Name: xrd.Name}, crd)
	switch {
	case apierrors.IsNotFound(err):
		crd = nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot get CRD %q: %w", xrd.Name, err)
	}
	if xrd.DeletionTimestamp != nil {
		return r.terminate(ctx, xrd, crd)
	}
	return r.establish(ctx, xrd, crd)
}

// writeStatus writes what changed of the status. The lock keeps a list of conditions from replacing one it does not know. An
// XRD that has just lost its last finalizer has no status any more.
func (r *reconciler) writeStatus(ctx context.Context, before, xrd *v1.CompositeResourceDefinition) error {
	if equality.Semantic.DeepEqual(before.Status, xrd.Status) {
		return nil
	}
	before.ResourceVersion = xrd.ResourceVersion
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, xrd, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the status of XRD %q: %w", xrd.Name, err)
	}
	return nil
}

func setCondition(xrd *v1.CompositeResourceDefinition, c commonv1.Condition) {
	xrd.Status.SetConditions(c.WithObservedGeneration(xrd.Generation))
}
