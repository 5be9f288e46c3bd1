// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
)

const (
	testNamespace = "crosswatch-system"
	imageOne      = "registry.example.org/walls:v1"
	imageTwo      = "registry.example.org/walls:v2"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newClient returns a client of an API server that has the objects.
func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{
		pkgv1.AddToScheme, v1beta1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).WithObjects(objects...).
		WithStatusSubresource(&pkgv1.Function{}, &pkgv1.FunctionRevision{}).Build()
}

func newCertificates(c client.Client, clock *testclock.FakePassiveClock) *certificates {
	return &certificates{client: c, live: c, namespace: testNamespace, lifetimes: DefaultLifetimes(), clock: clock}
}

func walls(image string) *pkgv1.Function {
	fn := &pkgv1.Function{ObjectMeta: metav1.ObjectMeta{Name: "walls", UID: "of-walls"}}
	fn.Spec.Package = image
	return fn
}

// revisionOf returns the revision that an installer made for the Function.
func revisionOf(fn *pkgv1.Function, number int64, state pkgv1.RevisionDesiredState) *pkgv1.FunctionRevision {
	r := planFor(fn, nil).want
	r.UID = types.UID(r.Name)
	r.Spec.Revision, r.Spec.DesiredState = number, state
	return r
}
