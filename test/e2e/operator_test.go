// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
)

// operator is a running operator under its own ServiceAccount.
type operator struct {
	w      *world
	cancel context.CancelFunc
	done   chan error
}

// setting changes how a test's operator is run.
type setting func(*app.Options, *rest.Config)

// operate runs the operator until the test ends, or until it is stopped. With
// no settings it publishes status often and leaves functions to the test, and
// nothing else differs from what the flags default to.
func (w *world) operate(settings ...setting) *operator {
	w.t.Helper()
	cfg, err := cluster.OperatorConfig(w.t.Context())
	w.must(err)
	o := app.NewOptions()
	o.MetricsBindAddress = "0"
	o.HealthProbeBindAddress = "0"
	o.LogLevel = app.LogLevelError
	o.StatusInterval = 200 * time.Millisecond
	o.FunctionRuntime = app.FunctionRuntimeExternal
	for _, set := range settings {
		set(&o, cfg)
	}

	ctx, cancel := context.WithCancel(context.Background())
	op := &operator{w: w, cancel: cancel, done: make(chan error, 1)}
	go func() { op.done <- app.Run(ctx, cfg, o) }()
	w.operators = append(w.operators, op)
	return op
}

// stop ends the operator and waits for it. It is idempotent.
func (o *operator) stop() {
	o.w.t.Helper()
	if o.cancel == nil {
		return
	}
	o.cancel()
	o.cancel = nil
	if err := <-o.done; err != nil && !errors.Is(err, context.Canceled) {
		o.w.t.Errorf("the operator ended with an error: %v", err)
	}
}

// retryAfter makes failed runs wait before they are tried again.
func retryAfter(d time.Duration) setting {
	return func(o *app.Options, _ *rest.Config) { o.RetryBaseDelay, o.RetryMaxDelay = d, d }
}

func cleanupContext(t *testing.T) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}

// sweepOften makes sweeps happen within a test.
func sweepOften(o *app.Options, _ *rest.Config) { o.SweepInterval = 50 * time.Millisecond }

// gate holds the operator's reads of ConfigMaps back, so that no XR that
// requires one can be tracked before it opens.
type gate struct{ opened chan struct{} }

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) open() { close(g.opened) }

func (g *gate) reconciles(_ *app.Options, cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/configmaps") {
				select {
				case <-g.opened:
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}
			return next.RoundTrip(r)
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
