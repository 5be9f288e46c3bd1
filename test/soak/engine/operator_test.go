// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/store"
	"github.com/crosswatch-io/crosswatch/test/soak"
	"github.com/crosswatch-io/crosswatch/test/watchserver"
)

// sweepInterval is short, so that sweeps cross new references all the time.
const sweepInterval = 100 * time.Millisecond

// verifyInterval is longer than events lag behind the fastest changes here.
const verifyInterval = 3 * time.Second

// operator is a real engine with a controller for each kind of XR.
type operator struct {
	engine     *engine.Engine
	reconciler func(*engine.Controller) reconcile.Reconciler
	stop       func() error
}

// operate starts an operator that knows nothing yet.
func operate(server *watchserver.Server, reconciler func(*engine.Controller) reconcile.Reconciler) (*operator, error) {
	cfg := server.Config()
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	e := engine.New(engine.Config{
		Dynamic: dyn, Discovery: disco, Trackers: dependency.NewRegistry(), SweepInterval: sweepInterval,
		FailureTolerance: engine.DefaultFailureTolerance, VerifyInterval: verifyInterval, Log: logr.Discard(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	o := &operator{engine: e, reconciler: reconciler, stop: func() error {
		cancel()
		err := <-done
		httpClient.CloseIdleConnections()
		return err
	}}
	for _, kind := range soak.XRKinds {
		if err := o.start(kind); err != nil {
			return nil, errors.Join(err, o.stop())
		}
	}
	return o, nil
}

// start runs the controller of a kind of XR.
func (o *operator) start(kind string) error {
	_, err := o.engine.Start(kind, engine.ControllerOptions{
		Kind:                    soak.GVK(kind),
		MaxConcurrentReconciles: 8,
		// Nothing is retried: see reconciler.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Hour, time.Hour),
		Reconciler:  o.reconciler,
	})
	return err
}

// look tells the engine, as the operator's watches of CRDs and roles do, that kinds
// and rules may be others than before.
func (o *operator) look() {
	for _, kind := range soak.AllKinds() {
		o.engine.KindChanged(schema.GroupResource{Group: soak.GVK(kind).Group, Resource: soak.Resource(kind)})
	}
	o.engine.RulesChanged()
}

// ordering is in which order a run records and reads.
type ordering interface {
	require(context.Context, *engine.Controller, *run, dependency.Reference) ([]*unstructured.Unstructured, error)
}

// reconciler runs an XR of this test as the composer runs one: it records before it
// reads or writes, and writes only what differs. It never asks to run again.
type reconciler struct {
	controller *engine.Controller
	server     *watchserver.Server
	said       *sync.Map // by UID, what XRs of soak.SilentKind saw
	ordering   ordering
}

// run is the scope of one reconcile.
type run struct {
	xr       *unstructured.Unstructured
	plan     soak.Plan
	required []dependency.Requirement
	composed []dependency.Reference
}

func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	name := req.NamespacedName
	xr, fresh := r.controller.Begin(name)
	if !fresh {
		return reconcile.Result{}, nil
	}
	r.controller.Cause(name)
	if xr == nil {
		r.controller.Forget(name)
		return reconcile.Result{}, nil
	}
	x := &run{xr: xr, plan: soak.PlanOf(xr)}
	saw, err := x.plan.See(func(ref dependency.Reference) ([]*unstructured.Unstructured, error) {
		found, err := r.ordering.require(ctx, r.controller, x, ref)
		if err == nil {
			r.controller.Saw(name, ref, found...)
		}
		return found, err
	})
	if err == nil {
		err = r.compose(ctx, x, saw)
	}
	if err != nil {
		r.controller.Fail(name)
		saw = soak.Blind
	} else {
		r.controller.Track(name, x.composed, x.required)
	}
	if ctx.Err() == nil {
		r.say(xr, saw)
	}
	return reconcile.Result{}, nil
}

// requirement is a further one of the run's only step.
func (x *run) requirement(ref dependency.Reference) dependency.Requirement {
	return dependency.Requirement{Step: "look", Name: strconv.Itoa(len(x.required)), From: dependency.Resources, Reference: ref}
}

func (x *run) name() dependency.XR {
	return dependency.XR{Namespace: x.xr.GetNamespace(), Name: x.xr.GetName()}
}

// read returns what the informer keeps of what the reference means.
func read(informer *store.Informer, ref dependency.Reference) []*unstructured.Unstructured {
	if ref.Name == "" {
		return informer.List(ref.Namespace, ref.Labels)
	}
	if obj := informer.Get(ref.Namespace, ref.Name); obj != nil {
		return []*unstructured.Unstructured{obj}
	}
	return nil
}

// compose makes the XR's objects say what the XR saw.
func (r *reconciler) compose(ctx context.Context, x *run, saw string) error {
	for _, name := range composedOf(x.xr, x.plan) {
		ref := dependency.Reference{GVK: soak.GVK(soak.ComposedKind), Namespace: x.xr.GetNamespace(), Name: name}
		informer, err := r.controller.Depend(ctx, x.name(), ref)
		if err != nil {
			return err
		}
		x.composed = append(x.composed, ref)
		live := informer.Get(ref.Namespace, ref.Name)
		r.controller.Saw(x.name(), ref, live)
		if live != nil && soak.ValueOf(live) == saw {
			continue
		}
		if _, _, err := r.server.Put(soak.Thing(soak.ComposedKind, ref.Namespace, ref.Name, nil, saw, "")); err != nil {
			return err
		}
	}
	return nil
}

// say says what the XR saw. A conflict or a deletion is an event on the XR, which
// runs it again.
func (r *reconciler) say(xr *unstructured.Unstructured, saw string) {
	if xr.GetKind() == soak.SilentKind {
		r.said.Store(xr.GetUID(), saw)
		return
	}
	if saw == soak.SawOf(xr) {
		return
	}
	told := &unstructured.Unstructured{Object: maps.Clone(xr.Object)}
	told.Object["metadata"] = maps.Clone(xr.Object["metadata"].(map[string]any))
	told.Object["status"] = map[string]any{"saw": saw}
	if stored, _, err := r.server.Put(told); err == nil {
		r.controller.Wrote(stored)
	}
}

// composedOf returns the names of what an XR composes. An XR of the same name takes
// over what another left.
func composedOf(xr *unstructured.Unstructured, p soak.Plan) []string {
	var out []string
	for i := range p.Composes {
		out = append(out, fmt.Sprintf("%s-%s-%d", xr.GetKind(), xr.GetName(), i))
	}
	return out
}
