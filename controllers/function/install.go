// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// +kubebuilder:rbac:groups=pkg.crossplane.io,resources=functionrevisions,verbs=create;patch;delete
// +kubebuilder:rbac:groups=pkg.crossplane.io,resources=functions/status,verbs=patch

// An owner reference that blocks the owner's deletion takes this right where the API server enforces it.
// +kubebuilder:rbac:groups=pkg.crossplane.io,resources=functions/finalizers;functionrevisions/finalizers,verbs=update

// installer keeps the revisions of Functions.
type installer struct {
	client  client.Client
	live    client.Reader
	objects *objects
	clock   clock.PassiveClock

	// allowDevelopment is whether Functions are called on the development servers of their annotations.
	allowDevelopment bool
}

func (r *installer) setUp(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("function-installer").
		For(&pkgv1.Function{}).
		Owns(&pkgv1.FunctionRevision{}).
		Owns(&corev1.Service{}).
		Watches(&v1beta1.DeploymentRuntimeConfig{}, handler.EnqueueRequestsFromMapFunc(r.configuredBy)).
		WithOptions(options()).
		Complete(r)
}

// configuredBy returns the Functions whose revisions refer to a configuration.
func (r *installer) configuredBy(ctx context.Context, config client.Object) []reconcile.Request {
	revisions := r.objects.configuredBy(ctx, config.GetName())
	requests := make([]reconcile.Request, 0, len(revisions))
	for _, revision := range revisions {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: functionOwning(&revision)}})
	}
	return requests
}

// Reconcile sees to it that the Function's image has a revision, and that the right revisions are active.
func (r *installer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	fn := &pkgv1.Function{}
	err := r.client.Get(ctx, req.NamespacedName, fn)
	switch {
	case apierrors.IsNotFound(err):
		r.objects.forget(functionKind, req.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot get Function %q: %w", req.Name, err)
	case fn.DeletionTimestamp != nil:
		return reconcile.Result{}, nil // all of it goes with its owner
	}

	before := fn.DeepCopy()
	wait, err := r.install(ctx, fn)
	return reconcile.Result{RequeueAfter: wait}, errors.Join(unlessOutdated(err), unlessOutdated(r.writeStatus(ctx, before, fn)))
}

// install returns after what time there is something to do even if nothing changes until then. Once the revisions are known, nothing
// that fails keeps from what comes after it.
func (r *installer) install(ctx context.Context, fn *pkgv1.Function) (time.Duration, error) {
	if r.allowDevelopment && isDevelopment(fn) {
		reportDevelopment(fn)
		return 0, r.deactivateAll(ctx, fn)
	}
	if err := validate(fn); err != nil {
		reportUninstallable(fn, err)
		return 0, nil // until it is changed
	}
	revisions, err := r.ensureRevision(ctx, fn)
	switch {
	case apierrors.IsConflict(err):
		return 0, err // says nothing of the Function
	case err != nil:
		reportUninstallable(fn, apifault.Stable(err))
		return 0, err
	}
	if err := r.label(ctx, fn, revisions); err != nil {
		return 0, err
	}
	unserved := r.serve(ctx, fn, revisions)
	report(fn, revisions, unserved)
	gone, wait := surplus(fn, revisions, r.clock.Now())
	return wait, errors.Join(unserved, r.deactivate(ctx, superseded(revisions)...), r.remove(ctx, gone))
}

func isDevelopment(fn *pkgv1.Function) bool {
	return fn.Annotations[pkgv1.AnnotationRuntime] == pkgv1.RuntimeDevelopment
}

// validate says why no revision can be made of the Function.
func validate(fn *pkgv1.Function) error {
	if faults := validation.IsValidLabelValue(fn.Name); len(faults) > 0 {
		return fmt.Errorf("the Function's name can't be a label, so that no revision can refer to it: %s; create it under a shorter name", faults[0])
	}
	ref, err := reference.Parse(fn.Spec.Package)
	if err != nil {
		return fmt.Errorf("spec.package %q is no image: %w; correct it", fn.Spec.Package, err)
	}
	if named, ok := ref.(reference.Named); !ok || reference.IsNameOnly(named) || reference.Domain(named) == "" {
		return fmt.Errorf("spec.package %q is no image with registry and tag or digest; correct it", fn.Spec.Package)
	}
	return nil
}

// ensureRevision returns the Function's own revisions, of which one is for its image.
//
// The cache may lack what this controller wrote a moment ago. It is good enough to see that nothing needs to be done, but not to
// number a revision.
func (r *installer) ensureRevision(ctx context.Context, fn *pkgv1.Function) ([]pkgv1.FunctionRevision, error) {
	revisions, err := revisionsOf(ctx, r.client, fn)
	if err != nil || planFor(fn, revisions).isNothing() {
		return owned(fn, revisions), err
	}
	revisions, err = revisionsOf(ctx, r.live, fn)
	if err != nil {
		return nil, err
	}
	p := planFor(fn, revisions)
	switch {
	case p.isNothing():
		return owned(fn, revisions), nil
	case p.have == nil:
		if err := nameIsFree(fn, revisions); err != nil {
			return nil, err
		}
		if err := r.client.Create(ctx, p.want); err != nil {
			return nil, fmt.Errorf("cannot create FunctionRevision %q: %w", p.want.Name, err)
		}
		return owned(fn, append(revisions, *p.want)), nil
	}
	if err := r.patch(ctx, p.have, p.want); err != nil {
		return nil, err
	}
	*p.have = *p.want
	return owned(fn, revisions), nil
}

// nameIsFree says why the revision for the Function's image can't be created: another has its name.
func nameIsFree(fn *pkgv1.Function, revisions []pkgv1.FunctionRevision) error {
	i := slices.IndexFunc(revisions, func(r pkgv1.FunctionRevision) bool { return r.Name == revisionName(fn) })
	switch {
	case i < 0:
		return nil
	case functionOwning(&revisions[i]) == fn.Name:
		return fmt.Errorf("FunctionRevision %q is that of an earlier Function of this name, with which it is deleted: wait", revisions[i].Name)
	}
	owner := metav1.GetControllerOf(&revisions[i])
	return fmt.Errorf("FunctionRevision %q is there already and is controlled by %s %q: rename this Function", revisions[i].Name, owner.Kind, owner.Name)
}

func (r *installer) patch(ctx context.Context, have, want *pkgv1.FunctionRevision) error {
	patch := client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, want, patch); err != nil {
		return fmt.Errorf("cannot update FunctionRevision %q: %w", have.Name, err)
	}
	return nil
}

// label puts the label back by which callers find the Function's revisions.
func (r *installer) label(ctx context.Context, fn *pkgv1.Function, revisions []pkgv1.FunctionRevision) error {
	for i := range revisions {
		have := &revisions[i]
		if isLabelled(fn, have) {
			continue
		}
		want := have.DeepCopy()
		metav1.SetMetaDataLabel(&want.ObjectMeta, pkgv1.LabelParentPackage, fn.Name)
		if err := r.patch(ctx, have, want); err != nil {
			return err
		}
		*have = *want
	}
	return nil
}

// deactivate takes revisions out of force.
func (r *installer) deactivate(ctx context.Context, revisions ...*pkgv1.FunctionRevision) error {
	for _, have := range revisions {
		want := have.DeepCopy()
		want.Spec.DesiredState = pkgv1.RevisionInactive
		if err := r.patch(ctx, have, want); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (r *installer) deactivateAll(ctx context.Context, fn *pkgv1.Function) error {
	revisions, err := revisionsOf(ctx, r.client, fn)
	if err != nil {
		return err
	}
	for _, revision := range owned(fn, revisions) {
		if revision.Spec.DesiredState != pkgv1.RevisionActive {
			continue
		}
		if err := r.deactivate(ctx, &revision); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes inactive revisions, but none that was activated meanwhile.
func (r *installer) remove(ctx context.Context, revisions []*pkgv1.FunctionRevision) error {
	for _, revision := range revisions {
		seen := client.Preconditions{UID: &revision.UID, ResourceVersion: &revision.ResourceVersion}
		if err := r.client.Delete(ctx, revision, seen); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete FunctionRevision %q: %w", revision.Name, err)
		}
	}
	return nil
}

// serve leads the Service that is named after the Function to the revision in force. The operator itself calls each revision by a
// Service of its own: a name that two revisions share would lead calls meant for the newer to the older for as long as addresses
// are remembered.
func (r *installer) serve(ctx context.Context, fn *pkgv1.Function, revisions []pkgv1.FunctionRevision) error {
	inForce := function.InForce(revisions)
	if inForce == nil || inForce.Status.Endpoint == "" || !canNameService(fn.Name) {
		return nil
	}
	config, err := r.objects.configOf(ctx, inForce)
	switch {
	case errors.Is(err, errNoConfig):
		return nil // the Service stays as it is; the revision's condition says what is missing
	case err != nil:
		return fmt.Errorf("cannot make Service %q of Function %q: %w", fn.Name, fn.Name, err)
	}
	service := serviceOf(inForce, fn.Name, config)
	return blamed(r.objects.apply(ctx, owner{kind: functionKind, object: fn}, service, &corev1.Service{}), config)
}

func (r *installer) writeStatus(ctx context.Context, before, fn *pkgv1.Function) error {
	if equality.Semantic.DeepEqual(before.Status, fn.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, fn, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the status of Function %q: %w", fn.Name, err)
	}
	return nil
}

// revisionsOf returns the revisions that are the Function's by their label, those that it controls, whose label may be lost, and
// whichever has the name of its next one.
func revisionsOf(ctx context.Context, reader client.Reader, fn *pkgv1.Function) ([]pkgv1.FunctionRevision, error) {
	list := &pkgv1.FunctionRevisionList{}
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("cannot list the revisions of Function %q: %w", fn.Name, err)
	}
	return slices.DeleteFunc(list.Items, func(r pkgv1.FunctionRevision) bool {
		return !isLabelled(fn, &r) && !metav1.IsControlledBy(&r, fn) && r.Name != revisionName(fn)
	}), nil
}

func isLabelled(fn *pkgv1.Function, revision *pkgv1.FunctionRevision) bool {
	return revision.Labels[pkgv1.LabelParentPackage] == fn.Name
}

// owned returns the revisions that the Function controls. Others are their makers'.
func owned(fn *pkgv1.Function, revisions []pkgv1.FunctionRevision) []pkgv1.FunctionRevision {
	out := make([]pkgv1.FunctionRevision, 0, len(revisions))
	for i := range revisions {
		if metav1.IsControlledBy(&revisions[i], fn) {
			out = append(out, revisions[i])
		}
	}
	return out
}

func setConditions(fn *pkgv1.Function, conditions ...commonv1.Condition) {
	for _, c := range conditions {
		fn.Status.SetConditions(c.WithObservedGeneration(fn.Generation))
	}
}
