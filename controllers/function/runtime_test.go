// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// runs returns what a revision runs as: objects of which it controls all but the last.
func runs(revision *pkgv1.FunctionRevision) (deployment *appsv1.Deployment, others []client.Object) {
	meta := metav1.ObjectMeta{
		Namespace: testNamespace, Name: revision.Name, UID: "of-the-object",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(revision, revisionKind)},
	}
	secret := &corev1.Secret{ObjectMeta: meta}
	secret.Name = *revision.Spec.TLSServerSecretName
	foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: revision.Name}}
	return &appsv1.Deployment{ObjectMeta: meta}, []client.Object{&corev1.Service{ObjectMeta: meta}, secret, foreign}
}

func TestAnInactiveRevisionKeepsItsDeploymentForTheDrain(t *testing.T) {
	revision := revisionOf(walls(imageOne), 1, pkgv1.RevisionInactive)
	revision.Status.Endpoint = "dns:///walls:9443"
	deployment, others := runs(revision)
	c := newClient(t, append(others, revision, deployment)...)
	clock := testclock.NewFakePassiveClock(start)
	r := &runner{client: c, live: c, objects: &objects{client: c, live: c, namespace: testNamespace}, clock: clock}
	reconciled := func() time.Duration {
		t.Helper()
		result, err := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: revision.Name}})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	isThere := func(object client.Object) bool {
		t.Helper()
		err := c.Get(context.Background(), client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return !apierrors.IsNotFound(err)
	}

	if wait := reconciled(); wait != Drain {
		t.Errorf("it is to be looked at after %s, want %s", wait, Drain)
	}
	if !isThere(revision) || revision.Status.Endpoint != "" {
		t.Errorf("it still has endpoint %q, and would count if it became active", revision.Status.Endpoint)
	}
	clock.SetTime(start.Add(Drain - time.Second))
	if wait := reconciled(); wait != time.Second || !isThere(deployment) {
		t.Errorf("a second before the end it is to be looked at after %s, its Deployment is there: %t", wait, isThere(deployment))
	}
	clock.SetTime(start.Add(Drain))
	reconciled()
	for _, object := range []client.Object{deployment, others[0], others[1]} {
		if isThere(object) {
			t.Errorf("%s is left", describe(object))
		}
	}
	if !isThere(others[2]) {
		t.Error("a ServiceAccount that the revision does not control was deleted")
	}
}

func TestARevisionThatSomebodyElseMadeIsLeftAlone(t *testing.T) {
	byHand := &pkgv1.FunctionRevision{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}
	byHand.Spec.DesiredState, byHand.Status.Endpoint = pkgv1.RevisionActive, "dns:///elsewhere:9443"
	c := newClient(t, byHand)
	r := &runner{client: c, live: c, objects: &objects{client: c, live: c, namespace: testNamespace}, clock: testclock.NewFakePassiveClock(start)}
	if _, err := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "by-hand"}}); err != nil {
		t.Fatal(err)
	}
	after := &pkgv1.FunctionRevision{}
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(byHand), after); err != nil {
		t.Fatal(err)
	}
	if after.Status.Endpoint != byHand.Status.Endpoint || len(after.Status.Conditions) > 0 {
		t.Errorf("its status became %+v", after.Status)
	}
}

func TestAnEndpointIsGrantedByTheAPIServersWord(t *testing.T) {
	revision := revisionOf(walls(imageOne), 1, pkgv1.RevisionActive)
	deployment, _ := runs(revision)
	deployment.Status = appsv1.DeploymentStatus{
		AvailableReplicas: 1,
		Conditions:        []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}
	cases := map[string]struct {
		live     []client.Object
		endpoint string
	}{
		"Available":               {live: []client.Object{deployment}, endpoint: "dns:///" + revision.Name + ".crosswatch-system:9443"},
		"OnlyTheCacheStillHasOne": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := revision.DeepCopy()
			r := &runner{live: newClient(t, tc.live...), objects: &objects{namespace: testNamespace}, clock: testclock.NewFakePassiveClock(start)}
			if err := r.grantEndpoint(context.Background(), got); err != nil {
				t.Fatal(err)
			}
			if got.Status.Endpoint != tc.endpoint {
				t.Errorf("the endpoint is %q, want %q", got.Status.Endpoint, tc.endpoint)
			}
		})
	}
}

func TestDevelopmentFunctionsAreNotRun(t *testing.T) {
	fn := walls(imageOne)
	fn.Annotations = map[string]string{
		pkgv1.AnnotationRuntime: pkgv1.RuntimeDevelopment, pkgv1.AnnotationRuntimeDevelopmentTarget: "127.0.0.1:9443",
	}
	earlier := revisionOf(fn, 1, pkgv1.RevisionActive)
	c := newClient(t, fn, earlier)
	r := &installer{client: c, live: c, objects: &objects{client: c, live: c, namespace: testNamespace}, clock: testclock.NewFakePassiveClock(start), allowDevelopment: true}
	if _, err := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: fn.Name}}); err != nil {
		t.Fatal(err)
	}
	revisions := &pkgv1.FunctionRevisionList{}
	if err := c.List(context.Background(), revisions); err != nil {
		t.Fatal(err)
	}
	if len(revisions.Items) != 1 || revisions.Items[0].Spec.DesiredState != pkgv1.RevisionInactive {
		t.Errorf("its revisions are %v, want only the earlier one, inactive", revisions.Items)
	}
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(fn), fn); err != nil {
		t.Fatal(err)
	}
	if reason := fn.Status.GetCondition(commonv1.TypeInstalled).Reason; reason != commonv1.ReasonDevelopmentRuntime {
		t.Errorf("Installed has reason %q", reason)
	}
}
