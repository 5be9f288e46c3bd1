// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

func (w *world) role(t *testing.T, name string) *rbacv1.ClusterRole {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: name}, role); err != nil {
		t.Fatalf("get ClusterRole: %v", err)
	}
	return role
}

func (w *world) keep(t *testing.T) {
	t.Helper()
	if _, err := w.access.Reconcile(context.Background(), reconcile.Request{}); err != nil {
		t.Fatalf("Reconcile: %v", err)
	}
}

// expectRules fails unless each role has the rules that follow from the XRDs of those names.
func (w *world) expectRules(t *testing.T, names ...string) {
	t.Helper()
	var xrds []*v1.CompositeResourceDefinition
	for _, name := range names {
		xrds = append(xrds, define(name))
	}
	for role := range rulesByRole {
		w.expectRole(t, role, xrds...)
	}
}

// expectRole fails unless the role has the rules that follow from these XRDs.
func (w *world) expectRole(t *testing.T, role string, xrds ...*v1.CompositeResourceDefinition) {
	t.Helper()
	if diff := cmp.Diff(rulesOf(resourcesOf(xrds), rulesByRole[role]), w.role(t, role).Rules, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("rules of %s (-want +got):\n%s", role, diff)
	}
}

// made returns the CRD that an XRD of that name controls.
func made(t *testing.T, name string) *extv1.CustomResourceDefinition {
	t.Helper()
	return mustRender(t, define(name))
}

func TestRulesFollowTheXRDs(t *testing.T) {
	deleted := define("leaving.example.org")
	deleted.Finalizers = []string{v1.FinalizerDefinition}
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	foreign := mustRender(t, define("foreign.example.org"))
	foreign.OwnerReferences = nil
	w := newWorld(t, nil, define("rooms.example.org"), made(t, "rooms.example.org"), deleted, made(t, "leaving.example.org"),
		define("foreign.example.org"), foreign, define("rooms.batch"), made(t, "rooms.batch"), define("unmade.example.org"))

	w.keep(t)
	w.expectRules(t, "rooms.example.org", "leaving.example.org")
	if diff := cmp.Diff([]string{RoleComposites, RoleView, RoleEdit}, w.grants); diff != "" {
		t.Errorf("writes of roles (-want +got):\n%s", diff)
	}

	w.keep(t)
	if len(w.grants) > len(rulesByRole) {
		t.Errorf("roles were written although nothing changed: %v", w.grants)
	}

	if err := errors.Join(w.client.Delete(context.Background(), define("rooms.example.org")), w.client.Delete(context.Background(), foreign),
		w.client.Create(context.Background(), made(t, "foreign.example.org"))); err != nil {
		t.Fatal(err)
	}
	w.keep(t)
	w.expectRules(t, "leaving.example.org", "foreign.example.org")
}

// Objects of an aggregated API have no CRD: until an XRD has one, only the operator gets rights, and not by the XRD alone.
func TestAnXRDWithoutACRDGrantsUsersNothing(t *testing.T) {
	w := newWorld(t, nil, define("rooms.example.org"))
	w.keep(t)
	w.expectRules(t)

	w.reconcile(t)
	w.keep(t)
	w.expectRules(t, "rooms.example.org")
	if err := w.client.Delete(context.Background(), w.crd(t)); err != nil {
		t.Fatal(err)
	}
	w.keep(t)
	w.expectRole(t, RoleComposites, define("rooms.example.org"))
	w.expectRole(t, RoleView)
	w.expectRole(t, RoleEdit)
}

func TestTheLastRuleGoes(t *testing.T) {
	w := newWorld(t, nil, define("rooms.example.org"), made(t, "rooms.example.org"))
	w.keep(t)
	if err := w.client.Delete(context.Background(), define("rooms.example.org")); err != nil {
		t.Fatal(err)
	}
	w.keep(t)
	w.expectRules(t)
}

func TestForeignRulesAreReplaced(t *testing.T) {
	w := newWorld(t, nil, define("rooms.example.org"), made(t, "rooms.example.org"))
	w.keep(t)
	role := w.role(t, RoleComposites)
	role.Rules = []rbacv1.PolicyRule{rule("", []string{"secrets"}, "get")}
	if err := w.client.Update(context.Background(), role); err != nil {
		t.Fatal(err)
	}
	w.keep(t)
	w.expectRules(t, "rooms.example.org")
}

// stale is a reader that has not seen our writes yet.
type stale struct {
	client.Reader
	role *rbacv1.ClusterRole
}

func (s stale) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s.role.DeepCopyInto(obj.(*rbacv1.ClusterRole))
	return nil
}

func TestAWriteThatIsNotSeenYetIsNotRepeated(t *testing.T) {
	w := newWorld(t, nil, define("rooms.example.org"), made(t, "rooms.example.org"))
	for _, r := range append(w.access.users, w.access.operator) {
		r.reader = stale{role: w.role(t, r.name)}
	}
	w.keep(t)
	w.keep(t)
	if len(w.grants) != len(rulesByRole) {
		t.Errorf("want each role to be written once, got %v", w.grants)
	}
}

// RBAC refuses what the operator does not have itself, so that an XRD which comes meanwhile must wait for the next time.
func TestUsersAreGivenNoMoreThanTheOperatorHas(t *testing.T) {
	w := newWorld(t, nil, define("rooms.example.org"), made(t, "rooms.example.org"))
	w.onGrant = func() {
		w.onGrant = nil
		if err := errors.Join(w.client.Create(context.Background(), define("desks.example.org")),
			w.client.Create(context.Background(), made(t, "desks.example.org"))); err != nil {
			t.Error(err)
		}
	}
	w.keep(t)
	w.expectRules(t, "rooms.example.org")
	w.keep(t)
	w.expectRules(t, "rooms.example.org", "desks.example.org")
}

func TestAGrantThatIsThereWaitsForNoWrite(t *testing.T) {
	w := newWorld(t, nil, define("rooms.example.org"), made(t, "rooms.example.org"))
	w.keep(t)
	w.access.writing.Lock()
	defer w.access.writing.Unlock()
	if err := w.access.grant(context.Background()); err != nil {
		t.Error(err)
	}
}

func (w *world) aggregate(name string) error {
	role := &rbacv1.ClusterRole{}
	err := w.client.Get(context.Background(), client.ObjectKey{Name: name}, role)
	role.AggregationRule = &rbacv1.AggregationRule{}
	return errors.Join(err, w.client.Update(context.Background(), role))
}

func TestARoleThatCannotBeKeptHoldsNoOtherUp(t *testing.T) {
	w := newWorld(t, nil, define("rooms.example.org"), made(t, "rooms.example.org"))
	if err := w.aggregate(RoleView); err != nil {
		t.Fatal(err)
	}
	if _, err := w.access.Reconcile(context.Background(), reconcile.Request{}); err == nil {
		t.Error("want an error of the role that has an aggregationRule")
	}
	w.expectRole(t, RoleEdit, define("rooms.example.org"))
}

func TestRolesThatCannotBeKept(t *testing.T) {
	cases := map[string]struct {
		spoil func(*world) error
		want  string // empty if it is no error
	}{
		"the operator's is gone": {
			spoil: func(w *world) error {
				return w.client.Delete(context.Background(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: RoleComposites}})
			},
			want: `ClusterRole "crosswatch-composites" is not there: apply config/rbac again`,
		},
		"the operator's is aggregated": {
			spoil: func(w *world) error { return w.aggregate(RoleComposites) },
			want:  `ClusterRole "crosswatch-composites" has an aggregationRule, which replaces its rules: remove that`,
		},
		"the viewers' is aggregated": {
			spoil: func(w *world) error { return w.aggregate(RoleView) },
			want:  `ClusterRole "crosswatch-composites-view" has an aggregationRule, which replaces its rules: remove that`,
		},
		"the viewers' is gone": {
			spoil: func(w *world) error {
				return w.client.Delete(context.Background(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: RoleView}})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, define("rooms.example.org"), made(t, "rooms.example.org"))
			if err := tc.spoil(w); err != nil {
				t.Fatal(err)
			}
			text := ""
			if _, err := w.access.Reconcile(context.Background(), reconcile.Request{}); err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
