// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	pkgv1beta1 "github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
)

// ownKinds are the kinds that the operator keeps in its cache from start to end, leader or not.
func ownKinds(o Options) []client.Object {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	kinds := []client.Object{
		&v1.CompositeResourceDefinition{}, &v1.Composition{}, &v1.CompositionRevision{},
		&pkgv1.Function{}, &pkgv1.FunctionRevision{},
		&v1alpha1.DependencyWatchStatus{},
		crd,
	}
	if o.FunctionRuntime == FunctionRuntimeExternal {
		return append(kinds, &corev1.Secret{})
	}
	return append(append(kinds, &pkgv1beta1.DeploymentRuntimeConfig{}), runtimeKinds()...)
}

// runtimeKinds are those of the objects, in the operator's namespace, that run functions.
func runtimeKinds() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &corev1.Secret{}, &corev1.Service{}, &corev1.ServiceAccount{}}
}

// startInformers gives each own kind its informer. They start with the cache.
func startInformers(ctx context.Context, c cache.Cache, o Options) error {
	for _, object := range ownKinds(o) {
		if _, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("cannot watch the operator's own kinds, are its CRDs installed? %w", err)
		}
	}
	return nil
}

// readiness turns true when the manager's cache has synced, which has the operator's own kinds and no others: a kind that cannot
// be watched, of all those that XRs need, must not make the operator unready.
type readiness struct {
	synced atomic.Bool
}

var errNotSynced = errors.New("the operator's own kinds have not synced yet")

// Start implements manager.Runnable: the manager calls it when its cache has synced.
func (r *readiness) Start(context.Context) error {
	r.synced.Store(true)
	return nil
}

// NeedLeaderElection is false: a replica that stands by is ready to.
func (r *readiness) NeedLeaderElection() bool { return false }

func (r *readiness) check(*http.Request) error {
	if !r.synced.Load() {
		return errNotSynced
	}
	return nil
}

// addProbes serves that the process runs, and that it can work: it knows the operator's own kinds, and the API server answers.
// That it does not is no reason to restart it.
func addProbes(mgr ctrl.Manager, api *reach) error {
	r := &readiness{}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("cannot make the client of the probes: %w", err)
	}
	ask := func(ctx context.Context) {
		_ = disco.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error() // the transport hears of it
	}
	err = errors.Join(
		mgr.Add(r),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("synced", r.check),
		mgr.AddReadyzCheck("api-server", api.checker(ask)),
	)
	if err != nil {
		return fmt.Errorf("cannot set up the probes: %w", err)
	}
	return nil
}
