// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/function"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// WakeConfig is what waking needs; all of it is required.
type WakeConfig struct {
	// Client reads XRDs, revisions and functions from a cache.
	Client client.Reader
	Engine *engine.Engine
}

// SetupWake makes changes of CompositionRevisions and of Functions wake the XRs
// that they concern.
func SetupWake(mgr ctrl.Manager, config WakeConfig) error {
	kinds := kinds{client: config.Client, controllers: func() []wakeable { return running(config.Engine) }}

	err := ctrl.NewControllerManagedBy(mgr).
		Named("wake-by-revision").
		Watches(&v1.CompositionRevision{}, byLabel(v1.LabelCompositionName)).
		Complete(&revisionWaker{kinds})
	if err != nil {
		return fmt.Errorf("cannot watch CompositionRevisions: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("wake-by-function").
		Watches(&pkgv1.Function{}, &handler.EnqueueRequestForObject{}).
		Watches(&pkgv1.FunctionRevision{}, byLabel(pkgv1.LabelParentPackage)).
		Complete(&functionWaker{kinds: kinds, seen: map[string]string{}})
	if err != nil {
		return fmt.Errorf("cannot watch Functions: %w", err)
	}
	return nil
}

// byLabel asks for a run of what an object's label names.
func byLabel(label string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		name := obj.GetLabels()[label]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
}

// wakeable is a running XR controller, named after its XRD.
type wakeable interface {
	Name() string
	XRs() []*unstructured.Unstructured
	Wake(kind schema.GroupVersionKind, object types.NamespacedName, xrs ...types.NamespacedName)
}

func running(e *engine.Engine) []wakeable {
	controllers := e.Controllers()
	out := make([]wakeable, 0, len(controllers))
	for _, c := range controllers {
		out = append(out, c)
	}
	return out
}

// kinds are the XR kinds that are being reconciled.
type kinds struct {
	client      client.Reader
	controllers func() []wakeable
}

// A chooser returns, of the XRs of one kind, those to wake.
type chooser func(*v1.CompositeResourceDefinition, []xr.XR) []types.NamespacedName

// wake wakes what pick chooses of each kind's XRs, because of a change of that
// object. A kind whose XRD is gone has nobody to wake.
func (k kinds) wake(ctx context.Context, kind schema.GroupVersionKind, object types.NamespacedName, pick chooser) error {
	for _, c := range k.controllers() {
		d := &v1.CompositeResourceDefinition{}
		err := k.client.Get(ctx, types.NamespacedName{Name: c.Name()}, d)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot read CompositeResourceDefinition %q: %w", c.Name(), err)
		}
		if err != nil {
			continue
		}
		stored := c.XRs()
		xrs := make([]xr.XR, 0, len(stored))
		for _, obj := range stored {
			xrs = append(xrs, xr.New(obj, d.GetScope() == v1.ScopeLegacyCluster))
		}
		c.Wake(kind, object, pick(d, xrs)...)
	}
	return nil
}

// revisionWaker wakes the XRs of a Composition when its revisions change.
type revisionWaker struct{ kinds }

func (w *revisionWaker) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	revisions, err := revisionsOf(ctx, w.client, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	composition := v1.GroupVersion.WithKind(v1.KindComposition)
	return reconcile.Result{}, w.wake(ctx, composition, req.NamespacedName, func(d *v1.CompositeResourceDefinition, xrs []xr.XR) []types.NamespacedName {
		if len(revisions) > 0 && revisions[0].Spec.CompositeTypeRef.GroupVersionKind() != d.GetCompositeGroupVersionKind() {
			return nil
		}
		return FollowersOf(xrs, d, req.Name, revisions)
	})
}

// functionWaker wakes the XRs that use a function when another server answers
// for it, and those that are not well whenever anything about it changes.
type functionWaker struct {
	kinds

	mu   sync.Mutex
	seen map[string]string // by function, what answers for it; guarded by mu
}

func (w *functionWaker) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	server, err := w.serverOf(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	using, err := w.revisionsUsing(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	same := w.isSame(req.Name, server)
	function := pkgv1.GroupVersion.WithKind(pkgv1.KindFunction)
	return reconcile.Result{}, w.wake(ctx, function, req.NamespacedName, func(_ *v1.CompositeResourceDefinition, xrs []xr.XR) []types.NamespacedName {
		return UsersOf(xrs, using, same)
	})
}

// isSame reports whether a function is served as it was when last seen. Seen for
// the first time it is: its XRs are started along with it.
func (w *functionWaker) isSame(function, server string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	last, ok := w.seen[function]
	w.seen[function] = server
	return !ok || last == server
}

// serverOf spells what answers for a function: its revision in force, and the
// server that its annotations name.
func (w *functionWaker) serverOf(ctx context.Context, name string) (string, error) {
	fn := &pkgv1.Function{}
	if err := w.client.Get(ctx, types.NamespacedName{Name: name}, fn); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("cannot read Function %q: %w", name, err)
	}
	var revisions pkgv1.FunctionRevisionList
	if err := w.client.List(ctx, &revisions, client.MatchingLabels{pkgv1.LabelParentPackage: name}); err != nil {
		return "", fmt.Errorf("cannot list the revisions of Function %q: %w", name, err)
	}
	parts := []string{fn.Annotations[pkgv1.AnnotationRuntime], fn.Annotations[pkgv1.AnnotationRuntimeDevelopmentTarget]}
	if r := function.InForce(revisions.Items); r != nil {
		parts = append(parts, r.Name, r.Status.Endpoint)
	}
	return strings.Join(parts, " "), nil
}

func (w *functionWaker) revisionsUsing(ctx context.Context, function string) (map[string]bool, error) {
	var all v1.CompositionRevisionList
	if err := w.client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("cannot list CompositionRevisions: %w", err)
	}
	using := map[string]bool{}
	for i := range all.Items {
		uses := func(s v1.PipelineStep) bool { return s.FunctionRef.Name == function }
		if slices.ContainsFunc(all.Items[i].Spec.Pipeline, uses) {
			using[all.Items[i].Name] = true
		}
	}
	return using, nil
}
