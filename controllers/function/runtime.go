// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
)

// +kubebuilder:rbac:groups=pkg.crossplane.io,resources=functionrevisions/status,verbs=patch

var revisionKind = pkgv1.GroupVersion.WithKind(pkgv1.KindFunctionRevision)

// runner runs the active ones of the FunctionRevisions that Functions control. Others are their makers'.
type runner struct {
	client       client.Client
	live         client.Reader
	objects      *objects
	certificates *certificates
	clock        clock.PassiveClock
}

func (r *runner) setUp(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("function-runtime").
		For(&pkgv1.FunctionRevision{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&corev1.Secret{}).
		Watches(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(r.sharing), builder.WithPredicates(deletion)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.trusting)).
		Watches(&v1beta1.DeploymentRuntimeConfig{}, handler.EnqueueRequestsFromMapFunc(r.configuredBy)).
		WithOptions(options()).
		Complete(r)
}

// trusting returns all revisions if the Secret is the authority's.
func (r *runner) trusting(ctx context.Context, secret client.Object) []reconcile.Request {
	if secret.GetName() != AuthoritySecretName {
		return nil
	}
	return requestsFor(r.objects.revisions(ctx))
}

func (r *runner) configuredBy(ctx context.Context, config client.Object) []reconcile.Request {
	return requestsFor(r.objects.configuredBy(ctx, config.GetName()))
}

// sharing returns the revisions whose configuration names the ServiceAccount.
func (r *runner) sharing(ctx context.Context, account client.Object) []reconcile.Request {
	return requestsFor(slices.DeleteFunc(r.objects.revisions(ctx), func(revision pkgv1.FunctionRevision) bool {
		config, err := r.objects.configOf(ctx, &revision)
		if err != nil {
			return true // its creation is an event
		}
		named, isNamed := serviceAccountOf(&revision, config)
		return !isNamed || named.Name != account.GetName()
	}))
}

// deletion lets an object's end through.
var deletion = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

func requestsFor(revisions []pkgv1.FunctionRevision) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(revisions))
	for i := range revisions {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: revisions[i].Name}})
	}
	return requests
}

// Reconcile runs the revision if it is active, and stops it if it is not.
func (r *runner) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	revision := &pkgv1.FunctionRevision{}
	err := r.client.Get(ctx, req.NamespacedName, revision)
	switch {
	case apierrors.IsNotFound(err):
		r.objects.forget(revisionKind, req.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot get FunctionRevision %q: %w", req.Name, err)
	case revision.DeletionTimestamp != nil || functionOwning(revision) == "":
		return reconcile.Result{}, nil
	}

	before := revision.DeepCopy()
	revision.Status.Capabilities = []string{pkgv1.CapabilityComposition}
	revision.Status.ResolvedImage = revision.Spec.Image
	revision.Status.TLSServerSecretName = revision.Spec.TLSServerSecretName
	r.set(revision, commonv1.True(commonv1.TypeRevisionHealthy, commonv1.ReasonHealthyPackageRevision))
	var wait time.Duration
	if revision.Spec.DesiredState == pkgv1.RevisionActive {
		wait, err = r.run(ctx, revision)
	} else {
		wait, err = r.retire(ctx, revision)
	}
	return reconcile.Result{RequeueAfter: wait}, errors.Join(unlessOutdated(err), unlessOutdated(r.writeStatus(ctx, before, revision)))
}

// run sees to it that what an active revision needs is there. What goes wrong is in its condition, and takes no endpoint away: what
// was made before may well run.
func (r *runner) run(ctx context.Context, revision *pkgv1.FunctionRevision) (time.Duration, error) {
	running, wait, err := r.ensure(ctx, revision)
	var early *earlyError
	switch {
	case errors.As(err, &early):
		r.setUnhealthy(revision, early.Error())
		return early.from.Sub(r.clock.Now()), nil
	case errors.Is(err, errNoConfig) || errors.Is(err, errNoAuthority):
		r.setUnhealthy(revision, err.Error())
		return wait, nil // its creation is an event
	case apierrors.IsConflict(err):
		return 0, err // says nothing of the revision
	case err != nil:
		r.setUnhealthy(revision, apifault.Text(err))
		return 0, err
	}
	if fault := faultOf(running); fault != "" {
		r.setUnhealthy(revision, fault)
		return wait, nil
	}
	if revision.Status.Endpoint == "" {
		if err := r.grantEndpoint(ctx, revision); err != nil {
			return 0, err
		}
	}
	if revision.Status.Endpoint != "" {
		r.set(revision, commonv1.True(commonv1.TypeRuntimeHealthy, commonv1.ReasonHealthyPackageRuntime).WithMessage(shortageOf(running)))
	}
	return wait, nil
}

// ensure brings the revision's objects to what they should be. It returns the Deployment as it was seen before, and after what time
// its certificate is due, which is renewed even if nothing else can be done.
func (r *runner) ensure(ctx context.Context, revision *pkgv1.FunctionRevision) (*appsv1.Deployment, time.Duration, error) {
	secret, wait, err := r.certificates.serverSecret(ctx, revision)
	if err != nil {
		return nil, 0, err
	}
	config, err := r.objects.configOf(ctx, revision)
	if err != nil {
		return nil, wait, err
	}
	running, err := r.apply(ctx, revision, config, hashOf(secret))
	return running, wait, blamed(err, config)
}

func (r *runner) apply(
	ctx context.Context, revision *pkgv1.FunctionRevision, config *v1beta1.DeploymentRuntimeConfig, certificates string,
) (*appsv1.Deployment, error) {
	by := owner{kind: revisionKind, object: revision}
	account, named := serviceAccountOf(revision, config)
	var err error
	if named {
		err = r.objects.share(ctx, by, config.Name, account)
	} else {
		err = r.objects.apply(ctx, by, account, &corev1.ServiceAccount{})
	}
	if err != nil {
		return nil, err
	}
	if err := r.objects.apply(ctx, by, serviceOf(revision, revision.Name, config), &corev1.Service{}); err != nil {
		return nil, err
	}
	deployment, seen := deploymentOf(revision, config, account.Name, certificates), &appsv1.Deployment{}
	if err := r.objects.apply(ctx, by, deployment, seen); err != nil {
		return nil, err
	}
	return seen, nil
}

// grantEndpoint gives the revision its endpoint if a pod of it is available. The cache may still have one that was deleted when
// the revision was inactive, so the API server is asked; an endpoint is granted once in a revision's active life.
func (r *runner) grantEndpoint(ctx context.Context, revision *pkgv1.FunctionRevision) error {
	d := &appsv1.Deployment{}
	err := r.live.Get(ctx, types.NamespacedName{Namespace: r.objects.namespace, Name: revision.Name}, d)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot get %s: %w", describe(d), err)
	}
	if fault := faultOf(d); fault != "" {
		r.setUnhealthy(revision, fault)
		return nil
	}
	revision.Status.Endpoint = fmt.Sprintf("dns:///%s.%s:%d", revision.Name, r.objects.namespace, port)
	return nil
}

// retire takes the endpoint of an inactive revision away, and what runs it once no call can be on its way. The time counts from
// when the condition says so, whatever became of the operator meanwhile.
func (r *runner) retire(ctx context.Context, revision *pkgv1.FunctionRevision) (time.Duration, error) {
	rest := draining(revision, r.clock.Now())
	revision.Status.Endpoint = ""
	r.set(revision, commonv1.False(commonv1.TypeRuntimeHealthy, commonv1.ReasonInactivePackageRevision,
		"the revision is inactive; its Deployment is deleted a minute after it became so"))
	if rest > 0 {
		return rest, nil
	}
	by := owner{kind: revisionKind, object: revision}
	secretName := ptr.Deref(revision.Spec.TLSServerSecretName, serverSecretName(revision.Name))
	return 0, errors.Join(
		r.objects.remove(ctx, by, &appsv1.Deployment{}, revision.Name),
		r.objects.remove(ctx, by, &corev1.Service{}, revision.Name),
		r.objects.remove(ctx, by, &corev1.ServiceAccount{}, revision.Name),
		r.objects.remove(ctx, by, &corev1.Secret{}, secretName),
	)
}

func (r *runner) setUnhealthy(revision *pkgv1.FunctionRevision, message string) {
	r.set(revision, commonv1.False(commonv1.TypeRuntimeHealthy, commonv1.ReasonUnhealthyPackageRuntime, message))
}

func (r *runner) set(revision *pkgv1.FunctionRevision, c commonv1.Condition) {
	c.LastTransitionTime = metav1.NewTime(r.clock.Now())
	revision.Status.SetConditions(c.WithObservedGeneration(revision.Generation))
}

func (r *runner) writeStatus(ctx context.Context, before, revision *pkgv1.FunctionRevision) error {
	if equality.Semantic.DeepEqual(before.Status, revision.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, revision, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the status of FunctionRevision %q: %w", revision.Name, err)
	}
	return nil
}
