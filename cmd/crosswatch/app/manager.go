// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	functions "github.com/crosswatch-io/crosswatch/controllers/function"
	"github.com/crosswatch-io/crosswatch/internal/function"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// clientConfig returns a copy of the configuration for the operator's clients. They have no rate limit of their own: it would
// hold an urgent write back behind any other, while the API server's priority and fairness knows which of all its clients'
// requests can wait. What bounds our requests is that nothing is sent unless something changed.
func clientConfig(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.RateLimiter = nil
	cfg.UserAgent = "crosswatch"
	cfg.Wrap(countRequests)
	// The XRDs that are stored as v1 are deprecated there: once is enough to hear that.
	cfg.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	return cfg
}

// newManager returns a manager that works under that identity once it holds the lease, or at once if it need not.
func newManager(cfg *rest.Config, o Options, identity string, logger logr.Logger) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	lock, err := newLock(cfg, o, identity)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                              scheme,
		Logger:                              logger,
		Cache:                               cacheOptions(o),
		Metrics:                             metricsOptions(o),
		HealthProbeBindAddress:              o.HealthProbeBindAddress,
		LeaderElection:                      o.LeaderElect,
		LeaderElectionID:                    leaseName, // names the lease in metrics
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &o.LeaderElectLeaseDuration,
		RenewDeadline:                       &o.LeaderElectRenewDeadline,
		RetryPeriod:                         &o.LeaderElectRetryPeriod,
		// Names of controllers are unique in an operator, and a process may run several, one after the other.
		Controller: config.Controller{SkipNameValidation: ptr.To(true), Logger: logger},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the manager: %w", err)
	}
	return mgr, nil
}

// cacheOptions narrow the cache to the operator's own kinds, and those of its namespace to its own objects. A read of any other kind
// fails: it would start an informer of the whole kind, which nobody decided and nobody would stop.
func cacheOptions(o Options) cache.Options {
	options := cache.Options{
		ReaderFailOnMissingInformer: true,
		NewInformer:                 store.NewInformer,
		DefaultTransform:            cache.TransformStripManagedFields(),
		SyncPeriod:                  ptr.To(time.Duration(0)), // whatever is missed is missed by a watch, which lists again
		ByObject:                    map[client.Object]cache.ByObject{},
	}
	if o.FunctionRuntime == FunctionRuntimeExternal {
		options.ByObject[&corev1.Secret{}] = cache.ByObject{Namespaces: map[string]cache.Config{o.Namespace: {
			FieldSelector: fields.OneTermEqualSelector("metadata.name", function.ClientSecretName),
		}}}
		return options
	}
	for _, kind := range runtimeKinds() {
		options.ByObject[kind] = cache.ByObject{Namespaces: map[string]cache.Config{o.Namespace: {
			LabelSelector: labels.SelectorFromSet(labels.Set{functions.LabelManagedBy: functions.ManagedBy}),
			Transform:     whole,
		}}}
	}
	return options
}

// whole keeps an object's managed fields: what they say we own is compared before it is applied.
func whole(object any) (any, error) { return object, nil }

func metricsOptions(o Options) metricsserver.Options {
	return metricsserver.Options{
		BindAddress:    o.MetricsBindAddress,
		SecureServing:  true,
		FilterProvider: filters.WithAuthenticationAndAuthorization,
		// Scrapes gain nothing by HTTP/2, whose streams cost an open port more than they cost who opens them.
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	}
}
