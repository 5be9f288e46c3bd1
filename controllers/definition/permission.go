// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
)

// ReasonWaitingForPermission is that of an XRD whose XRs the operator may not work with.
const ReasonWaitingForPermission = "WaitingForPermission"

// labelAggregate is that of the ClusterRoles by which platforms give the operator rights.
const labelAggregate = `crosswatch.io/aggregate-to-crosswatch: "true"`

// What was granted a moment ago the API server knows a moment later. What is not granted somebody has to grant.
const (
	grantTime         = 2 * time.Second
	grantRecheck      = 50 * time.Millisecond
	permissionRecheck = 5 * time.Second
)

// denial is the error that the operator may not work with the XRs of an XRD. It ends a reconcile; the next is after recheck.
type denial struct {
	reason, message string // of Established
	// settling says that what it is about changed a moment ago, so that the denial is probably nothing to tell anybody.
	settling bool
}

func (d *denial) Error() string { return d.message }

func (d *denial) recheck() time.Duration {
	if d.settling {
		return grantRecheck
	}
	return permissionRecheck
}

// permit is nil if the operator may work with the XRs, or does already; a *denial if it may not. The XRD controls the CRD, or there
// is none, which is nil, and then nobody else may serve the kind. It gives the operator what rights follow from the XRDs, and then
// asks the API server: it may have them by another way, and a request that is refused would be in the audit log. What failed of
// giving is tried again, and logged, by the roles' own controller.
func (r *reconciler) permit(ctx context.Context, xrd *v1.CompositeResourceDefinition, crd *extv1.CustomResourceDefinition) error {
	if _, running := r.engine.Controller(xrd.Name); running {
		return nil
	}
	if crd != nil {
		r.access.vacancies.add(xrd) // the cache may not have the CRD yet
	} else if err := r.access.vacancies.find(ctx, xrd); err != nil {
		return err
	}
	grantErr := r.access.grant(ctx)
	allowed, err := r.mayList(ctx, xrd)
	if err != nil || allowed {
		return err
	}
	ruleErr := mayDefine(xrd)
	cause := fmt.Sprintf("ClusterRole %q has it: is that bound to the operator's ServiceAccount?", RoleComposites)
	switch {
	case ruleErr != nil:
		cause = fmt.Sprintf("the operator makes no such rule: %s; while there are XRs, give it the rule by a ClusterRole with the label %s",
			ruleErr, labelAggregate)
	case grantErr != nil:
		cause = "it can't be put into the role that is for it: " + apifault.Text(grantErr)
	}
	return &denial{
		reason: ReasonWaitingForPermission,
		message: fmt.Sprintf("the operator may not list %q in API group %q; it needs %s; %s",
			xrd.Spec.Names.Plural, xrd.Spec.Group, ruleText(rulesOf(resourcesOf([]*v1.CompositeResourceDefinition{xrd}), operatorRules)), cause),
		settling: ruleErr == nil && r.access.sinceGrant() < grantTime,
	}
}

// mayList asks whether the operator may list the XRs. Whoever the API server knows may ask that of themselves.
func (r *reconciler) mayList(ctx context.Context, xrd *v1.CompositeResourceDefinition) (bool, error) {
	resource := resourceOf(xrd)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "list", Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
		},
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("cannot ask whether the operator may list %q in API group %q: %w", resource.Resource, resource.Group, err)
	}
	return review.Status.Allowed, nil
}

// setDenied says what permission is missing, and why. It returns the error.
func setDenied(xrd *v1.CompositeResourceDefinition, err error) error {
	var d *denial
	if errors.As(err, &d) && !d.settling {
		setCondition(xrd, commonv1.False(commonv1.TypeEstablished, d.reason, d.message))
	}
	return err
}

// isPassing reports whether an error is over in a moment, and nothing to tell anybody.
func isPassing(err error) bool {
	var d *denial
	return apierrors.IsConflict(err) || errors.As(err, &d) && d.settling
}
