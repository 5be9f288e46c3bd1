// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// apis is the discovery of an API server that serves one API group besides those of CRDs.
type apis struct {
	server *httptest.Server
	// versions of group example.org, and the resources that each serves; nil if the version does not answer.
	versions map[string][]string
	// silent is whether the API server does not even tell the versions.
	silent bool
	asked  int
}

func newAPIs(t *testing.T) *apis {
	t.Helper()
	a := &apis{}
	a.server = httptest.NewServer(http.HandlerFunc(a.answer))
	t.Cleanup(a.server.Close)
	return a
}

func (a *apis) client(t *testing.T) rest.Interface {
	t.Helper()
	c, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: a.server.URL}, a.server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return c.RESTClient()
}

func (a *apis) answer(rw http.ResponseWriter, req *http.Request) {
	a.asked++
	group, version, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/apis/"), "/")
	resources, known := a.versions[version]
	var answer any
	switch {
	case a.silent, known && resources == nil:
		http.Error(rw, "service unavailable", http.StatusServiceUnavailable)
		return
	case group == "example.org" && version == "" && len(a.versions) > 0:
		known := &metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: group}
		for version := range a.versions {
			known.Versions = append(known.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version})
		}
		answer = known
	case group == "example.org" && known:
		list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: group + "/" + version}
		for _, name := range resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		answer = list
	default:
		http.NotFound(rw, req)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(rw).Encode(answer); err != nil {
		panic(err)
	}
}

func TestAnXRDWaitsUntilNobodyElseServesItsKind(t *testing.T) {
	cases := map[string]struct {
		serve   func(*apis)
		reason  string
		message string
	}{
		"an aggregated API serves it": {
			serve:   func(a *apis) { a.versions = map[string][]string{"v1": {"desks", "rooms"}} },
			reason:  ReasonNotControlled,
			message: `APIService "v1.example.org" serves "rooms" in API group "example.org", and not from a CRD: rename the XR kind, or delete that APIService`,
		},
		"another version serves it": {
			serve:   func(a *apis) { a.versions = map[string][]string{"v1": {"desks"}, "v9": {"rooms"}} },
			reason:  ReasonNotControlled,
			message: `APIService "v9.example.org" serves "rooms" in API group "example.org", and not from a CRD: rename the XR kind, or delete that APIService`,
		},
		"an aggregated API does not answer": {
			serve:  func(a *apis) { a.versions = map[string][]string{"v1": nil} },
			reason: ReasonWaitingForPermission,
			message: `the operator does not grant itself "rooms" in API group "example.org", since it is not known whether somebody else serves that: ` +
				`cannot read /apis/example.org/v1: the server is currently unable to handle the request; mend or delete APIService "v1.example.org"`,
		},
		"the API server does not tell": {
			serve:  func(a *apis) { a.silent = true },
			reason: ReasonWaitingForPermission,
			message: `the operator does not grant itself "rooms" in API group "example.org", since it is not known whether somebody else serves that: ` +
				`cannot read /apis/example.org: the server is currently unable to handle the request`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, define("rooms.example.org"))
			tc.serve(w.apis)
			if result := w.reconcile(t); result.RequeueAfter != grantRecheck {
				t.Errorf("want to ask again after %s, since a CRD may have gone just now, got %s", grantRecheck, result.RequeueAfter)
			}
			if c := w.xrd(t).Status.GetCondition(commonv1.TypeEstablished); c.Reason == tc.reason {
				t.Errorf("what may be over in a moment is a condition: %q", c.Message)
			}

			w.clock.SetTime(w.clock.Now().Add(discoverySettles))
			if result := w.reconcile(t); result.RequeueAfter != permissionRecheck {
				t.Errorf("want to ask again after %s, got %s", permissionRecheck, result.RequeueAfter)
			}
			w.expect(t, corev1.ConditionFalse, tc.reason)
			if diff := cmp.Diff(tc.message, w.xrd(t).Status.GetCondition(commonv1.TypeEstablished).Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			w.keep(t)
			w.expectRules(t)
			if w.applies > 0 {
				t.Error("a CRD was applied")
			}

			w.apis.silent, w.apis.versions = false, map[string][]string{"v1": {"desks"}}
			w.reconcile(t)
			w.expect(t, corev1.ConditionFalse, ReasonWaitingForCRD)
			w.keep(t)
			w.expectRules(t, "rooms.example.org")
		})
	}
}

// The answer is as good as the XRD is old: its own CRD, which is made next, is served under the same name.
func TestAnXRDIsAskedAboutOnce(t *testing.T) {
	w := newWorld(t, nil, define("rooms.example.org"))
	w.denied = true
	w.reconcile(t)
	asked := w.apis.asked
	w.reconcile(t)
	if asked == 0 || w.apis.asked != asked {
		t.Errorf("want the API server to be asked by the first reconcile alone, got %d and %d requests", asked, w.apis.asked-asked)
	}
}

func TestAnXRDThatControlsACRDIsNotAskedAbout(t *testing.T) {
	w := newWorld(t, nil, define("rooms.example.org"), made(t, "rooms.example.org"))
	w.apis.silent = true
	w.reconcile(t)
	w.expect(t, corev1.ConditionFalse, ReasonWaitingForCRD)
	if w.apis.asked > 0 {
		t.Error("the API server was asked who serves the XRD's own kind")
	}
}

// Another XRD of the same name has another UID.
func TestWhatWasFoundGoesWithTheXRD(t *testing.T) {
	w := newWorld(t, nil)
	create := func(uid types.UID) *v1.CompositeResourceDefinition {
		xrd := define("rooms.example.org")
		xrd.UID = uid
		if err := w.client.Create(context.Background(), xrd); err != nil {
			t.Fatal(err)
		}
		return xrd
	}
	first := create("first")
	w.reconcile(t)
	xrd := w.xrd(t)
	xrd.Finalizers = nil
	if err := errors.Join(w.client.Update(context.Background(), xrd), w.client.Delete(context.Background(), w.crd(t)),
		w.client.Delete(context.Background(), w.xrd(t))); err != nil {
		t.Fatal(err)
	}
	second := create("second")
	w.apis.silent = true
	w.reconcile(t)
	w.keep(t)
	w.expectRules(t)
	for _, xrd := range []*v1.CompositeResourceDefinition{first, second} {
		if w.access.vacancies.isFound(xrd) {
			t.Errorf("the kind of the %s XRD counts as vacant", xrd.UID)
		}
	}
	if got := len(w.access.vacancies.asked); got != 1 {
		t.Errorf("%d XRDs are waited for, want the second alone", got)
	}
}

func TestDeletingAnXRDWithoutACRDDeletesNoObjects(t *testing.T) {
	project := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.org/v1", Kind: "Room"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "of an aggregated API"},
	}
	w := newWorld(t, []runtime.Object{project}, define("rooms.example.org"))
	w.apis.versions = map[string][]string{"v1": {"rooms"}}
	w.reconcile(t)
	xrd := w.xrd(t)
	if err := w.client.Delete(context.Background(), xrd); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	if err := w.client.Get(context.Background(), client.ObjectKeyFromObject(xrd), xrd); !apierrors.IsNotFound(err) {
		t.Errorf("want the XRD to be gone, got error %v", err)
	}
	if requests := w.metadata.(*metadatafake.FakeMetadataClient).Actions(); len(requests) > 0 {
		t.Errorf("the objects were asked for: %v", requests)
	}
}
