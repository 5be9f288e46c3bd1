// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/controllers/composite"
	"github.com/crosswatch-io/crosswatch/controllers/composition"
	"github.com/crosswatch-io/crosswatch/controllers/definition"
	functions "github.com/crosswatch-io/crosswatch/controllers/function"
	"github.com/crosswatch-io/crosswatch/controllers/watchstatus"
	"github.com/crosswatch-io/crosswatch/internal/composer"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// operator holds what the controllers share.
type operator struct {
	options     Options
	identity    string
	mgr         ctrl.Manager
	clients     clients
	roles       map[string]cache.Cache // of ClusterRoles, by name
	engine      *engine.Engine
	connections *function.Connections
	responses   *function.Responses
	runner      *function.Runner
}

func newOperator(ctx context.Context, mgr ctrl.Manager, o Options, identity string) (*operator, error) {
	c, err := newClients(mgr)
	if err != nil {
		return nil, err
	}
	roles, err := addRoleCaches(ctx, mgr)
	if err != nil {
		return nil, err
	}
	connections, err := function.NewConnections(function.ConnectionsConfig{
		Reader:           mgr.GetClient(),
		Namespace:        o.Namespace,
		AllowDevelopment: o.AllowDevelopmentFunctions,
		CallTimeout:      o.FunctionCallTimeout,
		MessageLimit:     o.FunctionMessageLimit,
		// A function that hangs leaves most workers of a kind to others.
		HangingCalls: max(1, o.MaxConcurrentReconciles/4),
	})
	if err != nil {
		return nil, err
	}
	inspector, err := addInspector(mgr, o)
	if err != nil {
		return nil, err
	}
	responses, err := function.NewResponses(function.ResponsesConfig{Bytes: o.FunctionCacheBytes, Clock: o.Clock})
	if err != nil {
		return nil, err
	}
	runner, err := newRunner(mgr, o, c, function.RunnerConfig{Caller: connections, Responses: responses, Inspector: inspector})
	if err != nil {
		responses.Close()
		return nil, err
	}
	return &operator{
		options:     o,
		identity:    identity,
		mgr:         mgr,
		clients:     c,
		roles:       roles,
		connections: connections,
		responses:   responses,
		runner:      runner,
		engine: engine.New(engine.Config{
			Dynamic:          c.dynamic,
			Discovery:        c.discovery,
			Trackers:         dependency.NewRegistry(),
			SweepInterval:    o.SweepInterval,
			VerifyInterval:   o.VerifyInterval,
			FailureTolerance: o.FailureTolerance,
			Breaker:          o.Breaker,
			Log:              mgr.GetLogger().WithName("engine"),
		}),
	}, nil
}

// close what the controllers shared, once they have ended.
func (op *operator) close() {
	op.connections.Close()
	op.responses.Close()
}

// newRunner adds to the config what all operators have.
func newRunner(mgr ctrl.Manager, o Options, c clients, config function.RunnerConfig) (*function.Runner, error) {
	schemas, err := function.NewSchemas(function.SchemasConfig{Published: c.discovery.OpenAPIV3(), Clock: o.Clock})
	if err != nil {
		return nil, err
	}
	config.Schemas = schemas
	config.Clock = o.Clock
	config.DefaultTTL = o.DefaultResponseTTL
	config.Functions = mgr.GetClient()
	return function.NewRunner(config)
}

// setUp adds everything that runs to the manager.
func (op *operator) setUp(ctx context.Context) error {
	mgr := op.mgr
	if err := mgr.Add(manager.RunnableFunc(op.engine.Run)); err != nil {
		return fmt.Errorf("cannot set up the engine: %w", err)
	}
	// What was forbidden is tried again as soon as it may be allowed.
	for _, name := range []string{roleComposed, definition.RoleComposites} {
		if err := onRules(ctx, op.roles[name], op.engine.RulesChanged); err != nil {
			return fmt.Errorf("cannot follow the rules of ClusterRole %q: %w", name, err)
		}
	}
	err := definition.Setup(mgr, definition.Config{
		Client:     mgr.GetClient(),
		Live:       mgr.GetAPIReader(),
		Metadata:   op.clients.metadata,
		Roles:      op.roles,
		Engine:     op.engine,
		Controller: op.controllerOf,
		Clock:      op.options.Clock,
	}, op.engine.KindChanged)
	if err != nil {
		return err
	}
	if err := composition.Setup(mgr, composition.Config{Client: mgr.GetClient(), Live: mgr.GetAPIReader()}); err != nil {
		return err
	}
	if err := functions.Setup(mgr, op.functionsConfig()); err != nil {
		return err
	}
	if err := composite.SetupWake(mgr, composite.WakeConfig{Client: mgr.GetClient(), Engine: op.engine}); err != nil {
		return err
	}
	return watchstatus.Setup(mgr, watchstatus.Config{
		Client:   mgr.GetClient(),
		Engine:   op.engine,
		Operator: v1alpha1.OperatorInfo{Version: Version(), Leader: op.identity},
		Interval: op.options.StatusInterval,
		Metrics:  metrics.Registry,
		Clock:    op.options.Clock,
		Log:      mgr.GetLogger().WithName("watchstatus"),
	})
}

func (op *operator) functionsConfig() functions.Config {
	config := functions.Config{Client: op.mgr.GetClient(), Connections: op.connections, Responses: op.responses}
	if op.options.FunctionRuntime == FunctionRuntimeDeployment {
		config.Runtime = &functions.RuntimeConfig{
			Live:             op.mgr.GetAPIReader(),
			Dynamic:          op.clients.dynamic,
			Namespace:        op.options.Namespace,
			Lifetimes:        functions.DefaultLifetimes(),
			Clock:            op.options.Clock,
			AllowDevelopment: op.options.AllowDevelopmentFunctions,
		}
	}
	return config
}

// controllerOf describes the controller of the XR kind that the XRD defines.
func (op *operator) controllerOf(xrd *v1.CompositeResourceDefinition) engine.ControllerOptions {
	o := op.options
	// What an applier remembers of an XR goes with the XR, or else with the controller.
	applier := composer.NewApplier(op.clients.dynamic)
	config := composite.Config{
		Client:       op.mgr.GetClient(),
		Dynamic:      op.clients.dynamic,
		Composer:     composer.New(composer.Config{Runner: op.runner, Applier: applier, Client: op.clients.dynamic}),
		Applier:      applier,
		Events:       op.mgr.GetEventRecorder("crosswatch"),
		Clock:        o.Clock,
		SyncInterval: o.SyncInterval,
		Definition:   xrd.Name,
		Scope:        xrd.GetScope(),
	}
	return engine.ControllerOptions{
		Kind:                    xrd.GetCompositeGroupVersionKind(),
		MaxConcurrentReconciles: o.MaxConcurrentReconciles,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](o.RetryBaseDelay, o.RetryMaxDelay),
		Reconciler:              func(c *engine.Controller) reconcile.Reconciler { return composite.NewReconciler(config, c) },
	}
}
