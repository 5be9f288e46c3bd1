// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/composer"
)

const (
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// Config is what the controllers work with. All of it is required, but for Runtime.
type Config struct {
	// Client reads from the cache, and writes.
	Client      client.Client
	Connections Connections
	Responses   Responses
	// Runtime says how functions are run; nil if they are run, and their FunctionRevisions made, by somebody else.
	Runtime *RuntimeConfig
}

// RuntimeConfig is what functions are run with. All of it is required, but for AllowDevelopment.
type RuntimeConfig struct {
	// Live reads from the API server what the cache may be behind in.
	Live client.Reader
	// Dynamic applies objects.
	Dynamic dynamic.Interface
	// Namespace that functions run in. Of its Secrets, Deployments, Services and ServiceAccounts the cache has those that are
	// labelled LabelManagedBy: ManagedBy, with their managed fields.
	Namespace string
	Lifetimes Lifetimes
	Clock     clock.PassiveClock
	// AllowDevelopment leaves Functions alone that are annotated to run on a development server, which is called then.
	AllowDevelopment bool
}

func (c Config) validate() error {
	switch {
	case c.Client == nil:
		return errors.New("cannot reconcile Functions without a client")
	case c.Connections == nil:
		return errors.New("cannot reconcile Functions without connections")
	case c.Responses == nil:
		return errors.New("cannot reconcile Functions without responses")
	case c.Runtime == nil:
		return nil
	}
	return c.Runtime.validate()
}

func (c *RuntimeConfig) validate() error {
	switch {
	case c.Live == nil:
		return errors.New("cannot run Functions without a live reader")
	case c.Dynamic == nil:
		return errors.New("cannot run Functions without a dynamic client")
	case c.Namespace == "":
		return errors.New("cannot run Functions without a namespace")
	case c.Clock == nil:
		return errors.New("cannot run Functions without a clock")
	case c.Lifetimes.Certificate <= 0 || c.Lifetimes.Succession <= 0 || c.Lifetimes.Authority < 3*c.Lifetimes.Certificate:
		return errors.New("cannot run Functions: the certificate authority must live three times as long as a certificate, and both some time")
	}
	return nil
}

type controllerOf interface {
	setUp(mgr ctrl.Manager) error
}

// Setup adds the controllers of Functions to the manager.
func Setup(mgr ctrl.Manager, c Config) error {
	if err := c.validate(); err != nil {
		return err
	}
	closes := &closer{client: c.Client, connections: c.Connections}
	controllers := []controllerOf{closes}
	if c.Runtime != nil {
		closes.responses = c.Responses
		controllers = append(controllers, newRuntime(c)...)
	}
	for _, controller := range controllers {
		if err := controller.setUp(mgr); err != nil {
			return fmt.Errorf("cannot set up the controllers of Functions: %w", err)
		}
	}
	return nil
}

func newRuntime(c Config) []controllerOf {
	r := c.Runtime
	o := &objects{client: c.Client, live: r.Live, applier: composer.NewApplier(r.Dynamic), namespace: r.Namespace}
	certs := &certificates{client: c.Client, live: r.Live, namespace: r.Namespace, lifetimes: r.Lifetimes, clock: r.Clock}
	return []controllerOf{
		&installer{client: c.Client, live: r.Live, objects: o, clock: r.Clock, allowDevelopment: r.AllowDevelopment},
		&runner{client: c.Client, live: r.Live, objects: o, certificates: certs, clock: r.Clock},
		&trustee{client: c.Client, certificates: certs},
	}
}

func options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: 2,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay),
	}
}

// unlessOutdated drops the error of a write that came too late, since its object had changed: that change arrives as an event, and
// is reconciled then.
func unlessOutdated(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
