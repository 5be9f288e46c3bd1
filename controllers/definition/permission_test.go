// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

func TestAnXRDWaitsForPermission(t *testing.T) {
	w := newWorld(t, nil, roomXRD(v1.ScopeNamespaced))
	w.denied = true
	if result := w.reconcile(t); result.RequeueAfter != grantRecheck {
		t.Errorf("want to ask again after %s, since the rules were written just now, got %s", grantRecheck, result.RequeueAfter)
	}
	if diff := cmp.Diff([]string{RoleComposites}, w.grants); diff != "" {
		t.Errorf("writes of roles before the question (-want +got):\n%s", diff)
	}
	if c := w.xrd(t).Status.GetCondition(commonv1.TypeEstablished); c.Reason == ReasonWaitingForPermission {
		t.Errorf("what takes a moment is a condition: %q", c.Message)
	}

	w.clock.SetTime(w.clock.Now().Add(grantTime))
	if result := w.reconcile(t); result.RequeueAfter != permissionRecheck {
		t.Errorf("want to ask again after %s, got %s", permissionRecheck, result.RequeueAfter)
	}
	w.expect(t, corev1.ConditionFalse, ReasonWaitingForPermission)
	if w.applies > 0 {
		t.Error("a kind is served that the operator may not list")
	}
	before := w.xrd(t)
	w.reconcile(t)
	if diff := cmp.Diff(before, w.xrd(t)); diff != "" {
		t.Errorf("the same denial changed the XRD (-before +after):\n%s", diff)
	}

	w.denied = false
	w.reconcile(t)
	w.serve(t)
	w.reconcile(t)
	w.expect(t, corev1.ConditionTrue, commonv1.ReasonWatchingCompositeResource)
	asked := w.reviews
	w.reconcile(t)
	if w.reviews > asked {
		t.Error("permission was asked for although the XR controller runs")
	}
}

func TestAMissingPermissionIsNamed(t *testing.T) {
	w := newWorld(t, nil, roomXRD(v1.ScopeNamespaced))
	if err := w.client.Delete(context.Background(), w.role(t, RoleComposites)); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	w.expect(t, corev1.ConditionFalse, ReasonWaitingForPermission)
	want := `the operator may not list "rooms" in API group "example.org"; it needs ` +
		`{apiGroups: [example.org], resources: [rooms], verbs: [get, list, watch, create, update, patch, delete]} and ` +
		`{apiGroups: [example.org], resources: [rooms/status, rooms/finalizers], verbs: [get, update, patch]}; ` +
		`it can't be put into the role that is for it: ClusterRole "crosswatch-composites" is not there: apply config/rbac again`
	if diff := cmp.Diff(want, w.xrd(t).Status.GetCondition(commonv1.TypeEstablished).Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

// The admission policy may be stricter than the one that is installed, and the right come from elsewhere.
func TestAnXRDIsEstablishedAlthoughTheRulesAreRefused(t *testing.T) {
	w := newWorld(t, nil, roomXRD(v1.ScopeNamespaced))
	w.reconcile(t)
	w.refuseRoles = apierrors.NewForbidden(rbacv1.Resource("clusterroles"), RoleComposites, errors.New("by a policy"))
	role := w.role(t, RoleComposites)
	role.Rules = append(role.Rules, rule("other.example.org", []string{"others"}, "get"))
	if err := w.client.Update(context.Background(), role); err != nil {
		t.Fatal(err)
	}
	w.serve(t)
	w.reconcile(t)
	w.expect(t, corev1.ConditionTrue, commonv1.ReasonWatchingCompositeResource)
	if _, err := w.access.Reconcile(context.Background(), reconcile.Request{}); err == nil || !strings.Contains(err.Error(), "by a policy") {
		t.Errorf("want the roles' own controller to say what was refused, got %v", err)
	}
}

func TestXRsOfAnXRDAreNotDeletedWithoutPermission(t *testing.T) {
	w := newWorld(t, nil, roomXRD(v1.ScopeNamespaced))
	w.reconcile(t)
	w.serve(t)
	w.reconcile(t)
	w.engine.running = nil // as after a restart
	w.denied = true
	w.clock.SetTime(w.clock.Now().Add(grantTime))
	if err := w.client.Delete(context.Background(), w.xrd(t)); err != nil {
		t.Fatal(err)
	}
	if result := w.reconcile(t); result.RequeueAfter != permissionRecheck {
		t.Errorf("want to ask again after %s, got %s", permissionRecheck, result.RequeueAfter)
	}
	w.expect(t, corev1.ConditionFalse, commonv1.ReasonTerminatingCompositeResource)
	if c := w.xrd(t).Status.GetCondition(commonv1.TypeEstablished); !strings.Contains(c.Message, "may not list") {
		t.Errorf("the message does not say what holds the deletion up: %q", c.Message)
	}
	w.crd(t)

	w.denied = false
	w.reconcile(t)
	w.reconcile(t)
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: "rooms.example.org"}, &v1.CompositeResourceDefinition{}); !apierrors.IsNotFound(err) {
		t.Errorf("want the XRD to be gone, got error %v", err)
	}
}

// Such a CRD may have come with a backup, or from an engine that reserves no groups.
func TestADenialSaysThatNoRuleIsMadeForAReservedGroup(t *testing.T) {
	xrd := define("rooms.apps.k8s.io")
	w := newWorld(t, nil, xrd, made(t, xrd.Name))
	var denied *denial
	if err := w.permit(context.Background(), xrd, made(t, xrd.Name)); !errors.As(err, &denied) {
		t.Fatalf("want a denial, got %v", err)
	}
	want := `the operator may not list "rooms" in API group "apps.k8s.io"; it needs ` + ruleText(rulesOf(resourcesOf([]*v1.CompositeResourceDefinition{xrd}), operatorRules)) +
		`; the operator makes no such rule: spec.group "apps.k8s.io" is reserved for kinds of Kubernetes or of the operator itself: ` +
		`use a group of your own domain; while there are XRs, give it the rule by a ClusterRole with the label crosswatch.io/aggregate-to-crosswatch: "true"`
	if diff := cmp.Diff(want, denied.message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if denied.settling {
		t.Error("the denial counts as passing, though no rule is ever made")
	}
}

func TestAReservedGroupIsInvalid(t *testing.T) {
	const name = "rooms.apps.k8s.io"
	w := newWorld(t, nil, define(name))
	if _, err := w.Reconcile(context.Background(), requestOf(name)); err != nil {
		t.Fatal(err)
	}
	xrd := &v1.CompositeResourceDefinition{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: name}, xrd); err != nil {
		t.Fatal(err)
	}
	c := xrd.Status.GetCondition(commonv1.TypeEstablished)
	if diff := cmp.Diff(condition{corev1.ConditionFalse, commonv1.ReasonInvalidDefinition}, condition{c.Status, c.Reason}); diff != "" {
		t.Errorf("Established (-want +got), message %q:\n%s", c.Message, diff)
	}
	w.expectRules(t)
	if w.applies > 0 {
		t.Error("a CRD was applied")
	}
}
