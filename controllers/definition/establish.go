// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// Reasons of Established that only this package gives.
const (
	// ReasonNotControlled is that of an XRD whose CRD belongs to somebody else, or whose kind is served without one.
	ReasonNotControlled = "NotControlled"
	// ReasonWaitingForCRD is that of an XRD whose CRD is there, and not served yet.
	ReasonWaitingForCRD = "WaitingForCRD"
)

// The watch of an XR kind tells nobody but XR controllers how it does, so that it is looked at again after these times.
const (
	startingWatchRecheck = 100 * time.Millisecond
	failedWatchRecheck   = 5 * time.Second
)

// establish makes the CRD what the XRD defines and, once it is served, runs the XR controller. It ends at whatever is still
// missing: the CRD's events start the next attempt.
func (r *reconciler) establish(ctx context.Context, xrd *v1.CompositeResourceDefinition, crd *extv1.CustomResourceDefinition) (reconcile.Result, error) {
	setOffered(xrd)
	if crd != nil && !metav1.IsControlledBy(crd, xrd) {
		// Whoever controls the CRD has its XRs reconciled, too.
		r.engine.Stop(xrd.Name)
		setCondition(xrd, commonv1.False(commonv1.TypeEstablished, ReasonNotControlled,
			fmt.Sprintf("CRD %q exists, and this XRD does not control it: delete the CRD, or rename the XR kind", crd.Name)))
		return reconcile.Result{}, nil
	}
	if err := mayDefine(xrd); err != nil {
		setInvalid(xrd, err.Error())
		return reconcile.Result{}, r.serveAnyway(ctx, xrd, crd)
	}
	if crd != nil && crd.DeletionTimestamp != nil {
		setWaiting(xrd, fmt.Sprintf("CRD %q is being deleted; it is made again when it is gone", crd.Name))
		return reconcile.Result{}, r.serveAnyway(ctx, xrd, crd)
	}

	rendered, err := Render(xrd)
	if err != nil {
		setInvalid(xrd, "cannot make a CRD: "+err.Error())
		return reconcile.Result{}, r.serveAnyway(ctx, xrd, crd)
	}
	// Other XRs may depend on the kind already: it is served only once the operator may list it.
	if err := r.permit(ctx, xrd, crd); err != nil {
		return reconcile.Result{}, setDenied(xrd, err)
	}
	applied, err := r.apply(ctx, rendered, crd)
	if err != nil {
		return reconcile.Result{}, errors.Join(setRefused(xrd, err), r.serveAnyway(ctx, xrd, crd))
	}
	if ok, message := established(applied); !ok {
		setWaiting(xrd, message)
		return reconcile.Result{}, nil
	}
	return r.start(xrd)
}

// start runs the XR controller. The XRD is Established when that gets the XRs' events, not earlier.
func (r *reconciler) start(xrd *v1.CompositeResourceDefinition) (reconcile.Result, error) {
	options := r.controller(xrd)
	if _, err := r.engine.Start(xrd.Name, options); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot start the XR controller of XRD %q: %w", xrd.Name, err)
	}
	xrd.Status.Controllers.CompositeResourceType = v1.TypeReferenceTo(options.Kind)

	switch watch := r.engine.Watch(options.Kind); watch.State {
	case engine.Active:
		setCondition(xrd, commonv1.True(commonv1.TypeEstablished, commonv1.ReasonWatchingCompositeResource))
		return reconcile.Result{}, nil
	case engine.Starting:
		return reconcile.Result{RequeueAfter: startingWatchRecheck}, nil
	default:
		setCondition(xrd, commonv1.False(commonv1.TypeEstablished, commonv1.ReasonWaitingForWatch,
			fmt.Sprintf("cannot watch XRs of kind %q: %s", options.Kind.Kind, watch.Message)))
		return reconcile.Result{RequeueAfter: failedWatchRecheck}, nil
	}
}

// serveAnyway runs the XR controller although the XRD is not Established, if the API server serves the kind from the CRD as it
// is: a faulty edit of the XRD must not stop the XRs that are there, nor a deletion of the CRD wait for ever for their finalizers.
func (r *reconciler) serveAnyway(ctx context.Context, xrd *v1.CompositeResourceDefinition, crd *extv1.CustomResourceDefinition) error {
	options := r.controller(xrd)
	if crd == nil || !serves(crd, options.Kind.Version) {
		return nil
	}
	if err := r.permit(ctx, xrd, crd); err != nil {
		return err
	}
	if _, err := r.engine.Start(xrd.Name, options); err != nil {
		return fmt.Errorf("cannot start the XR controller of XRD %q: %w", xrd.Name, err)
	}
	xrd.Status.Controllers.CompositeResourceType = v1.TypeReferenceTo(options.Kind)
	return nil
}

func serves(crd *extv1.CustomResourceDefinition, version string) bool {
	ok, _ := established(crd)
	return ok && slices.ContainsFunc(crd.Spec.Versions, func(v extv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Served
	})
}

// established reports whether the API server serves the CRD's kind, and if not, why.
func established(crd *extv1.CustomResourceDefinition) (ok bool, message string) {
	message = fmt.Sprintf("the API server does not serve CRD %q yet", crd.Name)
	for _, c := range crd.Status.Conditions {
		switch {
		case c.Type == extv1.Established && c.Status == extv1.ConditionTrue:
			ok = true
		case c.Type == extv1.NamesAccepted && c.Status == extv1.ConditionFalse:
			message = fmt.Sprintf("the API server refuses the names of CRD %q: %s", crd.Name, c.Message)
		}
	}
	return ok, message
}

// setInvalid says that the XRD defines no valid CRD. Trying again is of no use until the XRD changes, which is an event.
func setInvalid(xrd *v1.CompositeResourceDefinition, message string) {
	setCondition(xrd, commonv1.False(commonv1.TypeEstablished, commonv1.ReasonInvalidDefinition, message))
}

// setRefused says that the API server refused the CRD. It returns the error if trying again can help.
func setRefused(xrd *v1.CompositeResourceDefinition, err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		setInvalid(xrd, fmt.Sprintf("the API server refuses CRD %q: %s", xrd.Name, apifault.Text(err)))
		return nil
	case apierrors.IsConflict(err):
		return err
	}
	setCondition(xrd, commonv1.False(commonv1.TypeEstablished, commonv1.ReasonReconcileError, apifault.Text(err)))
	return err
}

func setWaiting(xrd *v1.CompositeResourceDefinition, message string) {
	setCondition(xrd, commonv1.False(commonv1.TypeEstablished, ReasonWaitingForCRD, message))
}

// setOffered tells who asks for a claim kind that there will be none.
func setOffered(xrd *v1.CompositeResourceDefinition) {
	if xrd.Spec.ClaimNames != nil {
		setCondition(xrd, commonv1.False(commonv1.TypeOffered, commonv1.ReasonClaimsNotOffered,
			"claims are not offered: create XRs themselves, of a Namespaced kind where they belong to a namespace"))
		return
	}
	xrd.Status.Conditions = slices.DeleteFunc(xrd.Status.Conditions, func(c commonv1.Condition) bool {
		return c.Type == commonv1.TypeOffered
	})
}
