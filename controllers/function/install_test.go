// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// installTest installs one Function.
type installTest struct {
	t         *testing.T
	client    client.Client
	clock     *testclock.FakePassiveClock
	installer *installer
	fn        *pkgv1.Function
}

func newInstallTest(t *testing.T, fn *pkgv1.Function, objs ...client.Object) *installTest {
	t.Helper()
	c, clock := newClient(t, append(objs, fn)...), testclock.NewFakePassiveClock(start)
	o := &objects{client: c, live: c, namespace: testNamespace}
	return &installTest{t: t, client: c, clock: clock, fn: fn, installer: &installer{client: c, live: c, objects: o, clock: clock}}
}

// reconcile returns the error, and reads the Function as it is then.
func (s *installTest) reconcile() error {
	s.t.Helper()
	_, err := s.installer.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: s.fn.Name}})
	s.read(s.fn)
	return err
}

func (s *installTest) read(object client.Object) {
	s.t.Helper()
	if err := s.client.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
		s.t.Fatal(err)
	}
}

func TestARevisionWhoseNameIsTaken(t *testing.T) {
	cases := map[string]struct {
		owner metav1.OwnerReference
		want  string // part of what the Function says
	}{
		"ByAnotherFunction": {
			owner: metav1.OwnerReference{APIVersion: "pkg.crossplane.io/v1", Kind: "Function", Name: "floors", UID: "of-floors"},
			want:  `is controlled by Function "floors": rename this Function`,
		},
		"ByAnotherKind": {
			owner: metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Installation", Name: "walls", UID: "of-it"},
			want:  `is controlled by Installation "walls": rename this Function`,
		},
		"ByAnEarlierFunction": {
			owner: metav1.OwnerReference{APIVersion: "pkg.crossplane.io/v1", Kind: "Function", Name: "walls", UID: "of-earlier-walls"},
			want:  "is that of an earlier Function of this name",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.owner.Controller = ptr.To(true)
			taken := revisionOf(walls(imageOne), 1, pkgv1.RevisionActive)
			taken.OwnerReferences = []metav1.OwnerReference{tc.owner}
			taken.Labels = nil
			s := newInstallTest(t, walls(imageOne), taken)
			if err := s.reconcile(); err == nil {
				t.Error("there is no error, so that it is not tried again")
			}
			c := s.fn.Status.GetCondition(commonv1.TypeInstalled)
			if c.Reason != commonv1.ReasonUnpackingPackage || !strings.Contains(c.Message, tc.want) {
				t.Errorf("Installed is %s, %s: %q, want %q", c.Status, c.Reason, c.Message, tc.want)
			}
		})
	}
}

func TestARevisionThatLostItsLabelIsFound(t *testing.T) {
	for name, image := range map[string]string{"ForTheImage": imageTwo, "ForAnEarlierImage": imageOne} {
		t.Run(name, func(t *testing.T) {
			one, two := revisionOf(walls(imageOne), 1, pkgv1.RevisionActive), revisionOf(walls(imageTwo), 2, pkgv1.RevisionActive)
			lost := map[string]*pkgv1.FunctionRevision{imageOne: one, imageTwo: two}[image]
			lost.Labels = nil
			s := newInstallTest(t, walls(imageTwo), one, two)
			if err := s.reconcile(); err != nil {
				t.Fatal(err)
			}
			s.read(lost)
			if got := lost.Labels[pkgv1.LabelParentPackage]; got != "walls" {
				t.Errorf("its label is %q", got)
			}
		})
	}
}

func TestAServiceOfTheFunctionsNameThatIsSomebodyElsesHoldsNothingUp(t *testing.T) {
	const third = "registry.example.org/walls:v3"
	retired := revisionOf(walls(third), 1, pkgv1.RevisionInactive)
	old, current := revisionOf(walls(imageOne), 3, pkgv1.RevisionActive), revisionOf(walls(imageTwo), 4, pkgv1.RevisionActive)
	for _, r := range []*pkgv1.FunctionRevision{old, current} {
		r.Status.Endpoint = "dns:///" + r.Name
		r.Status.SetConditions(commonv1.True(commonv1.TypeRuntimeHealthy, commonv1.ReasonHealthyPackageRuntime))
	}
	another := revisionOf(walls(third+"-rc1"), 2, pkgv1.RevisionInactive)
	for _, r := range []*pkgv1.FunctionRevision{retired, another} {
		c := commonv1.False(commonv1.TypeRuntimeHealthy, commonv1.ReasonInactivePackageRevision, "")
		c.LastTransitionTime = metav1.NewTime(start.Add(-Drain))
		r.Status.SetConditions(c)
	}
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "walls"}}
	s := newInstallTest(t, walls(imageTwo), retired, another, old, current, foreign)
	if err := s.reconcile(); err == nil {
		t.Error("there is no error, so that the Service is not tried again")
	}
	c := s.fn.Status.GetCondition(commonv1.TypeHealthy)
	if want := `Service "walls" in namespace "crosswatch-system" is there already`; c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, want) {
		t.Errorf("Healthy is %s: %q, want it to be True and to say: %s", c.Status, c.Message, want)
	}
	s.read(old)
	if old.Spec.DesiredState != pkgv1.RevisionInactive {
		t.Error("the old revision is still active")
	}
	if err := s.client.Get(context.Background(), client.ObjectKeyFromObject(retired), retired); !apierrors.IsNotFound(err) {
		t.Errorf("the revision beyond the history limit is not gone: %v", err)
	}
}

func TestADevelopmentFunctionRunsAsAnyOtherWhereThatIsNotAllowed(t *testing.T) {
	fn := walls(imageOne)
	fn.Annotations = map[string]string{pkgv1.AnnotationRuntime: pkgv1.RuntimeDevelopment}
	current := revisionOf(fn, 1, pkgv1.RevisionActive)
	s := newInstallTest(t, fn, current)
	if err := s.reconcile(); err != nil {
		t.Fatal(err)
	}
	s.read(current)
	c := s.fn.Status.GetCondition(commonv1.TypeInstalled)
	if current.Spec.DesiredState != pkgv1.RevisionActive || c.Reason != commonv1.ReasonActivePackageRevision {
		t.Errorf("its revision is %s, Installed has reason %q", current.Spec.DesiredState, c.Reason)
	}
	if want := "is ignored, since the operator was started without --allow-development-functions"; !strings.Contains(c.Message, want) {
		t.Errorf("Installed says %q, want it to say: %s", c.Message, want)
	}
}
