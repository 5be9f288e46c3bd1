// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=crosswatch-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=crosswatch-system,resources=leases,resourceNames=crosswatch-leader-election,verbs=get;update

// Run runs the operator until the context ends, and returns when everything that it started has stopped. It logs to the
// context's logger, or else as the options say. An error says why it can't start, or had to stop.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("invalid options: %w", err)
	}
	logger, err := loggerOf(ctx, o)
	if err != nil {
		return err
	}
	ctx = logr.NewContext(ctx, logger)

	identity, err := newIdentity()
	if err != nil {
		return err
	}
	cfg, api := clientConfig(cfg), newReach(o)
	cfg.Wrap(api.watch)
	mgr, err := newManager(cfg, o, identity, logger)
	if err != nil {
		return err
	}
	defer utilnet.CloseIdleConnectionsFor(mgr.GetHTTPClient().Transport)
	if err := refuseBesideOther(ctx, mgr.GetAPIReader(), o.Clock.Now()); err != nil {
		return err
	}
	if err := startInformers(ctx, mgr.GetCache(), o); err != nil {
		return err
	}
	op, err := newOperator(ctx, mgr, o, identity)
	if err != nil {
		return err
	}
	defer op.close()
	if err := op.setUp(ctx); err != nil {
		return err
	}
	if err := addProbes(mgr, api); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the operator had to stop: %w", err)
	}
	return nil
}

func loggerOf(ctx context.Context, o Options) (logr.Logger, error) {
	if logger, err := logr.FromContext(ctx); err == nil {
		return logger, nil
	}
	return NewLogger(o)
}
