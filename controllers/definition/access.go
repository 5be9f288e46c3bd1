// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
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
	client    client.Client
	vacancies *vacancies
	clock     clock.PassiveClock
	operator  *role
	users     []*role

	// writing makes reading XRDs and writing roles one step. So no rules replace those of newer XRDs, and users are given nothing
	// that the operator does not have at that time, which RBAC would refuse.
	writing sync.Mutex
}

// role is a ClusterRole whose rules follow from the XRDs.
type role struct {
	name     string
	optional bool
	rules    func(resources) []rbacv1.PolicyRule
	reader   client.Reader // keeps it in view
	// written is what was written last, since what is in view may be older.
	written atomic.Pointer[written]
}

type written struct {
	role *rbacv1.ClusterRole // as it was stored
	at   time.Time
}

// newAccess takes for each role what keeps it in view. Somebody who does not want view or edit to include XRs deletes the role.
func newAccess[R client.Reader](c client.Client, v *vacancies, readers map[string]R, passive clock.PassiveClock) *access {
	return &access{
		client:    c,
		vacancies: v,
		clock:     passive,
		operator:  &role{name: RoleComposites, rules: operatorRules, reader: readers[RoleComposites]},
		users: []*role{
			{name: RoleView, optional: true, rules: viewRules, reader: readers[RoleView]},
			{name: RoleEdit, optional: true, rules: editRules, reader: readers[RoleEdit]},
		},
	}
}

// Reconcile keeps all roles, whatever changed: the operator's first, since RBAC refuses users what the operator does not have. That
// one of the users' can't be kept is no reason to leave to another what its users may not do any more.
func (a *access) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	a.writing.Lock()
	defer a.writing.Unlock()
	defined, err := a.defined(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := a.keepLocked(ctx, a.operator, defined.all); err != nil {
		return reconcile.Result{}, err
	}
	var errs []error
	for _, r := range a.users {
		errs = append(errs, a.keepLocked(ctx, r, defined.made))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// grant gives the operator what rights follow from the XRDs. It waits for whoever writes roles only if it has to write.
func (a *access) grant(ctx context.Context) error {
	defined, err := a.defined(ctx)
	if err != nil {
		return err
	}
	if outdated, _, err := a.operator.compare(ctx, defined.all); outdated == nil {
		return err
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	if defined, err = a.defined(ctx); err != nil {
		return err
	}
	return a.keepLocked(ctx, a.operator, defined.all)
}

// sinceGrant returns how long ago the operator's rights were written last; very long, if they were not.
func (a *access) sinceGrant() time.Duration {
	if last := a.operator.written.Load(); last != nil {
		return a.clock.Since(last.at)
	}
	return math.MaxInt64
}

// kinds are the XR kinds that XRDs define.
type kinds struct {
	all  []resources // with those whose CRD is going to be made, and that nobody else serves
	made []resources // whose CRD is there
}

// defined returns the XR kinds that XRDs define. An XRD that is being deleted does so until it is gone; one that may not, whose CRD
// is somebody else's, or that has none and was not found vacant, does not.
func (a *access) defined(ctx context.Context) (kinds, error) {
	list := &v1.CompositeResourceDefinitionList{}
	if err := a.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return kinds{}, fmt.Errorf("cannot list XRDs: %w", err)
	}
	a.vacancies.retain(list.Items)
	var all, made []*v1.CompositeResourceDefinition
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
			if a.vacancies.isFound(xrd) {
				all = append(all, xrd)
			}
		case err != nil:
			return kinds{}, fmt.Errorf("cannot get CRD %q: %w", xrd.Name, err)
		case metav1.IsControlledBy(crd, xrd):
			all, made = append(all, xrd), append(made, xrd)
		}
	}
	return kinds{all: resourcesOf(all), made: resourcesOf(made)}, nil
}

// keepLocked writes the role if it has other rules than it should. a.writing must be held.
func (a *access) keepLocked(ctx context.Context, r *role, want []resources) error {
	outdated, rules, err := r.compare(ctx, want)
	if outdated == nil {
		return err
	}
	stored, err := a.write(ctx, outdated, rules)
	if err != nil {
		return err
	}
	r.written.Store(&written{role: stored, at: a.clock.Now()})
	return nil
}

// compare returns the role and the rules that it should have, or nil if it has them, or is not there and need not be.
func (r *role) compare(ctx context.Context, want []resources) (outdated *rbacv1.ClusterRole, rules []rbacv1.PolicyRule, err error) {
	rules = rulesOf(want, r.rules)
	current, err := r.current(ctx)
	switch {
	case apierrors.IsNotFound(err) && r.optional:
		return nil, nil, nil
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("ClusterRole %q is not there: apply config/rbac again", r.name)
	case err != nil:
		return nil, nil, fmt.Errorf("cannot get ClusterRole %q: %w", r.name, err)
	case current.AggregationRule != nil:
		return nil, nil, fmt.Errorf("ClusterRole %q has an aggregationRule, which replaces its rules: remove that", r.name)
	case equality.Semantic.DeepEqual(current.Rules, rules):
		return nil, nil, nil
	}
	return current, rules, nil
}

// current returns the role as it was last seen, or last written if that came later.
func (r *role) current(ctx context.Context) (*rbacv1.ClusterRole, error) {
	seen := &rbacv1.ClusterRole{}
	if err := r.reader.Get(ctx, client.ObjectKey{Name: r.name}, seen); err != nil {
		return nil, err
	}
	if last := r.written.Load(); last != nil && last.role.UID == seen.UID {
		order, err := resourceversion.CompareResourceVersion(seen.ResourceVersion, last.role.ResourceVersion)
		if err == nil && order < 0 {
			return last.role, nil
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
