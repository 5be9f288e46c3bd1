// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// The roles are there before the operator is. It lists and watches each by its name, which RBAC takes for a request of that one
// object. To put rules into RoleComposites that it does not have yet, it may escalate there, and nowhere else.
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=crosswatch-composites,verbs=list;watch;patch;escalate
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=crosswatch-composites-view;crosswatch-composites-edit,verbs=list;watch;patch

var roleKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRole")

// access keeps the rules of the roles.
type access struct {
	// client reads XRDs, and metadata of CRDs, from the cache, and writes roles.
	client client.Client
	clock  clock.PassiveClock
	// operator is the role of the operator itself; it comes first, since what users are given the operator must have.
	operator *role
	users    []*role
}

// role is a ClusterRole whose rules follow from the XRDs.
type role struct {
	name   string
	rules  func(resources) []rbacv1.PolicyRule
	reader client.Reader // keeps it in view

	// mu makes reading XRDs and writing rules one step, so that no rules replace those of newer XRDs.
	mu sync.Mutex
	// written is the role as it was after our last write, since what is in view may be older. Guarded by mu.
	written *rbacv1.ClusterRole
	// writtenAt is the time of that write. Guarded by mu.
	writtenAt time.Time
}

// newAccess takes for each role what keeps it in view.
func newAccess[R client.Reader](c client.Client, readers map[string]R, passive clock.PassiveClock) *access {
	return &access{
		client:   c,
		clock:    passive,
		operator: &role{name: RoleComposites, rules: operatorRules, reader: readers[RoleComposites]},
		users: []*role{
			{name: RoleView, rules: viewRules, reader: readers[RoleView]},
			{name: RoleEdit, rules: editRules, reader: readers[RoleEdit]},
		},
	}
}

// Reconcile keeps all roles, whatever changed.
func (a *access) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := a.keepOperator(ctx); err != nil {
		return reconcile.Result{}, err
	}
	for _, r := range a.users {
		// Somebody who does not want view or edit to include XRs deletes the role.
		if err := a.keep(ctx, r); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

// keepOperator gives the operator what rights follow from the XRDs.
func (a *access) keepOperator(ctx context.Context) error {
	err := a.keep(ctx, a.operator)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("ClusterRole %q is not there: apply config/rbac again", a.operator.name)
	}
	return err
}

// keep brings a role in line with the XRDs that the cache has. It writes only rules that differ.
func (a *access) keep(ctx context.Context, r *role) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	xrds, err := a.definitions(ctx)
	if err != nil {
		return err
	}
	rules := rulesOf(resourcesOf(xrds), r.rules)
	current, err := r.currentLocked(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("cannot get ClusterRole %q: %w", r.name, err)
	case current.AggregationRule != nil:
		return fmt.Errorf("ClusterRole %q has an aggregationRule, which replaces its rules: remove that", r.name)
	case equality.Semantic.DeepEqual(current.Rules, rules):
		return nil
	}
	stored, err := a.write(ctx, current, rules)
	if err != nil {
		return err
	}
	r.written, r.writtenAt = stored, a.clock.Now()
	return nil
}

// definitions returns the XRDs that define an XR kind, or are going to. One that is being deleted does so until it is gone; one
// that may not, or whose CRD is somebody else's, does not.
func (a *access) definitions(ctx context.Context) ([]*v1.CompositeResourceDefinition, error) {
	list := &v1.CompositeResourceDefinitionList{}
	if err := a.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list XRDs: %w", err)
	}
	var defining []*v1.CompositeResourceDefinition
	for i := range list.Items {
		xrd := &list.Items[i]
		if mayDefine(xrd) != nil {
			continue
		}
		crd := &metav1.PartialObjectMetadata{}
		crd.SetGroupVersionKind(crdKind)
		err := a.client.Get(ctx, client.ObjectKey{Name: xrd.Name}, crd, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("cannot get CRD %q: %w", xrd.Name, err)
		case !metav1.IsControlledBy(crd, xrd):
			continue
		}
		defining = append(defining, xrd)
	}
	return defining, nil
}

// currentLocked returns the role as it was last seen, or last written if that came later. r.mu must be held.
func (r *role) currentLocked(ctx context.Context) (*rbacv1.ClusterRole, error) {
	seen := &rbacv1.ClusterRole{}
	if err := r.reader.Get(ctx, client.ObjectKey{Name: r.name}, seen); err != nil {
		return nil, err
	}
	if r.written != nil && r.written.UID == seen.UID {
		order, err := resourceversion.CompareResourceVersion(seen.ResourceVersion, r.written.ResourceVersion)
		if err == nil && order < 0 {
			return r.written, nil
		}
	}
	return seen, nil
}

// write replaces the role's rules, whoever owns them, and returns what is stored. With the UID it is a conflict if the role is
// gone meanwhile; without, it would be an attempt to create one.
func (a *access) write(ctx context.Context, current *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) (*rbacv1.ClusterRole, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRole{Rules: rules})
	if err != nil {
		return nil, fmt.Errorf("cannot write ClusterRole %q: %w", current.Name, err)
	}
	intent := &unstructured.Unstructured{Object: map[string]any{"rules": content["rules"]}}
	intent.SetGroupVersionKind(roleKind)
	intent.SetName(current.Name)
	intent.SetUID(current.UID)
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), fieldOwner, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("cannot apply ClusterRole %q: %w", current.Name, err)
	}
	stored := &rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(intent.Object, stored); err != nil {
		return nil, fmt.Errorf("cannot read ClusterRole %q as it was stored: %w", current.Name, err)
	}
	return stored, nil
}

// sinceGrant returns how long ago the operator's rights were written last.
func (a *access) sinceGrant() time.Duration {
	a.operator.mu.Lock()
	defer a.operator.mu.Unlock()
	return a.clock.Since(a.operator.writtenAt)
}
