// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	metadatafake "k8s.io/client-go/metadata/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// fakeEngine is an engine whose watches are in the state that the test wants.
type fakeEngine struct {
	running []string
	watch   engine.WatchInfo
}

func (e *fakeEngine) Start(name string, o engine.ControllerOptions) (*engine.Controller, error) {
	if !slices.Contains(e.running, name) {
		e.running = append(e.running, name)
	}
	e.watch.GVK = o.Kind
	return nil, nil
}

func (e *fakeEngine) Controller(name string) (*engine.Controller, bool) {
	return nil, slices.Contains(e.running, name)
}

func (e *fakeEngine) Stop(name string) {
	e.running = slices.DeleteFunc(e.running, func(n string) bool { return n == name })
}
func (e *fakeEngine) Remove(name string) { e.Stop(name) }
func (e *fakeEngine) Watch(gvk schema.GroupVersionKind) engine.WatchInfo {
	if e.watch.GVK == gvk {
		return e.watch
	}
	return engine.WatchInfo{GVK: gvk, State: engine.Starting}
}

// world is a reconciler with all that it acts on.
type world struct {
	*reconciler
	client  client.Client
	engine  *fakeEngine
	clock   *clocktesting.FakePassiveClock
	applies int // of CRDs
	// refuse and refuseRoles are the API server's answers to a CRD and to a role.
	refuse, refuseRoles error

	grants  []string // the roles that were written
	onGrant func()   // called while a role is written
	reviews int      // the questions for permission
	// denied is the answer to them, whatever the role says.
	denied bool
	apis   *apis
}

func newWorld(t *testing.T, xrs []runtime.Object, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), extv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme), rbacv1.AddToScheme(scheme),
		authorizationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{
		engine: &fakeEngine{watch: engine.WatchInfo{State: engine.Active}}, clock: clocktesting.NewFakePassiveClock(time.Now()), apis: newAPIs(t),
	}
	for role := range rulesByRole {
		objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role, UID: types.UID(role)}})
	}
	w.client = fake.NewClientBuilder().
		WithScheme(scheme).
		WithObjects(objects...).
		WithStatusSubresource(&v1.CompositeResourceDefinition{}, &extv1.CustomResourceDefinition{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Apply:  w.apply,
			Create: w.review,
		}).
		Build()
	readers := map[string]client.Reader{}
	for role := range rulesByRole {
		readers[role] = w.client
	}
	w.reconciler = &reconciler{
		client:   w.client,
		live:     w.client,
		metadata: metadatafake.NewSimpleMetadataClient(scheme, xrs...),
		engine:   w.engine,
		access:   newAccess(w.client, newVacancies(w.apis.client(t), w.clock), readers, w.clock),
		controller: func(xrd *v1.CompositeResourceDefinition) engine.ControllerOptions {
			return engine.ControllerOptions{Kind: xrd.GetCompositeGroupVersionKind()}
		},
	}
	return w
}

// apply notes what is applied, and refuses it if the test wants that.
func (w *world) apply(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	object := obj.(interface {
		GetKind() string
		GetName() string
	})
	if object.GetKind() == roleKind.Kind {
		if w.refuseRoles != nil {
			return w.refuseRoles
		}
		w.grants = append(w.grants, object.GetName())
		if w.onGrant != nil {
			w.onGrant()
		}
		return c.Apply(ctx, obj, opts...)
	}
	w.applies++
	if w.refuse != nil {
		return w.refuse
	}
	return c.Apply(ctx, obj, opts...)
}

// review answers as the API server does: by the rules of the role.
func (w *world) review(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	review, ok := obj.(*authorizationv1.SelfSubjectAccessReview)
	if !ok {
		return c.Create(ctx, obj, opts...)
	}
	w.reviews++
	role := &rbacv1.ClusterRole{}
	if err := client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Name: RoleComposites}, role)); err != nil {
		return err
	}
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = !w.denied && slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, asked.Group) && slices.Contains(r.Resources, asked.Resource) && slices.Contains(r.Verbs, asked.Verb)
	})
	return nil
}

func (w *world) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := w.Reconcile(context.Background(), requestOf("rooms.example.org"))
	if err != nil {
		t.Fatalf("Reconcile: %v", err)
	}
	return result
}

func requestOf(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
}

func (w *world) xrd(t *testing.T) *v1.CompositeResourceDefinition {
	t.Helper()
	xrd := &v1.CompositeResourceDefinition{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: "rooms.example.org"}, xrd); err != nil {
		t.Fatalf("get XRD: %v", err)
	}
	return xrd
}

func (w *world) crd(t *testing.T) *extv1.CustomResourceDefinition {
	t.Helper()
	crd := &extv1.CustomResourceDefinition{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: "rooms.example.org"}, crd); err != nil {
		t.Fatalf("get CRD: %v", err)
	}
	return crd
}

// serve does what the API server does once it serves a CRD.
func (w *world) serve(t *testing.T) {
	t.Helper()
	crd := w.crd(t)
	crd.Status.Conditions = []extv1.CustomResourceDefinitionCondition{{Type: extv1.Established, Status: extv1.ConditionTrue}}
	if err := w.client.Status().Update(context.Background(), crd); err != nil {
		t.Fatalf("serve CRD: %v", err)
	}
}

type condition struct {
	Status corev1.ConditionStatus
	Reason string
}

func (w *world) expect(t *testing.T, status corev1.ConditionStatus, reason string) {
	t.Helper()
	c := w.xrd(t).Status.GetCondition(commonv1.TypeEstablished)
	if diff := cmp.Diff(condition{status, reason}, condition{c.Status, c.Reason}); diff != "" {
		t.Errorf("Established (-want +got), message %q:\n%s", c.Message, diff)
	}
}

func TestEstablish(t *testing.T) {
	w := newWorld(t, nil, roomXRD(v1.ScopeNamespaced))

	w.reconcile(t)
	w.expect(t, corev1.ConditionFalse, ReasonWaitingForCRD)
	if len(w.engine.running) > 0 {
		t.Error("the XR controller runs although the kind is not served")
	}

	w.serve(t)
	w.engine.watch.State = engine.Failed
	w.reconcile(t)
	w.expect(t, corev1.ConditionFalse, commonv1.ReasonWaitingForWatch)

	w.engine.watch.State = engine.Active
	w.reconcile(t)
	w.expect(t, corev1.ConditionTrue, commonv1.ReasonWatchingCompositeResource)
	if diff := cmp.Diff([]string{"rooms.example.org"}, w.engine.running); diff != "" {
		t.Errorf("XR controllers (-want +got):\n%s", diff)
	}
	want := v1.TypeReference{APIVersion: "example.org/v1", Kind: "Room"}
	if diff := cmp.Diff(want, w.xrd(t).Status.Controllers.CompositeResourceType); diff != "" {
		t.Errorf("compositeResourceType (-want +got):\n%s", diff)
	}
}

func TestEstablishedIsNotWrittenAgain(t *testing.T) {
	w := newWorld(t, nil, roomXRD(v1.ScopeCluster))
	w.reconcile(t)
	w.serve(t)
	w.reconcile(t)
	before, applies := w.xrd(t).ResourceVersion, w.applies

	w.reconcile(t)
	if got := w.xrd(t).ResourceVersion; got != before {
		t.Error("the XRD was written although nothing changed")
	}
	if w.applies != applies {
		t.Error("the CRD was applied although nothing changed")
	}
}

func TestEstablishCorrectsTheCRD(t *testing.T) {
	drifted := map[string]func(*extv1.CustomResourceDefinition){
		"Schema":   func(crd *extv1.CustomResourceDefinition) { crd.Spec.Versions[0].AdditionalPrinterColumns = nil },
		"Label":    func(crd *extv1.CustomResourceDefinition) { crd.Labels["team"] = "b" },
		"Category": func(crd *extv1.CustomResourceDefinition) { crd.Spec.Names.Categories = nil },
	}
	for name, drift := range drifted {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, roomXRD(v1.ScopeCluster, func(xrd *v1.CompositeResourceDefinition) {
				xrd.Labels = map[string]string{"team": "a"}
			}))
			w.reconcile(t)
			want := w.crd(t)
			changed := want.DeepCopy()
			drift(changed)
			if err := w.client.Update(context.Background(), changed); err != nil {
				t.Fatal(err)
			}
			w.reconcile(t)
			got := w.crd(t)
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.Labels, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForeignCRDIsNotTouched(t *testing.T) {
	foreign := mustRender(t, roomXRD(v1.ScopeNamespaced))
	foreign.OwnerReferences = nil
	foreign.Labels = map[string]string{"made": "by hand"}
	w := newWorld(t, nil, roomXRD(v1.ScopeNamespaced), foreign)
	before := w.crd(t)

	w.reconcile(t)
	w.expect(t, corev1.ConditionFalse, ReasonNotControlled)
	deleted := w.xrd(t)
	if err := w.client.Delete(context.Background(), deleted); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	if diff := cmp.Diff(before, w.crd(t)); diff != "" {
		t.Errorf("CRD (-before +after):\n%s", diff)
	}
	if err := w.client.Get(context.Background(), client.ObjectKeyFromObject(deleted), deleted); !apierrors.IsNotFound(err) {
		t.Errorf("want the XRD to be gone, got error %v", err)
	}
}

func TestRefusedSchema(t *testing.T) {
	kind := extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition").GroupKind()
	path := field.NewPath("spec", "versions").Index(0)
	a, b := field.Required(path.Child("a"), "must be set"), field.Required(path.Child("b"), "must be set")
	w := newWorld(t, nil, roomXRD(v1.ScopeNamespaced))

	w.refuse = apierrors.NewInvalid(kind, "rooms.example.org", field.ErrorList{a, b})
	w.reconcile(t)
	w.expect(t, corev1.ConditionFalse, commonv1.ReasonInvalidDefinition)
	before := w.xrd(t)

	w.refuse = apierrors.NewInvalid(kind, "rooms.example.org", field.ErrorList{b, a})
	w.reconcile(t)
	if diff := cmp.Diff(before, w.xrd(t)); diff != "" {
		t.Errorf("the same causes in another order changed the XRD (-before +after):\n%s", diff)
	}

	w.refuse = nil
	w.reconcile(t)
	w.expect(t, corev1.ConditionFalse, ReasonWaitingForCRD)
}

func TestTerminate(t *testing.T) {
	xr := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.org/v1", Kind: "Room"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "one"},
	}
	w := newWorld(t, []runtime.Object{xr}, roomXRD(v1.ScopeNamespaced))
	w.reconcile(t)
	w.serve(t)
	if err := w.client.Delete(context.Background(), w.xrd(t)); err != nil {
		t.Fatal(err)
	}

	if result := w.reconcile(t); result.RequeueAfter == 0 {
		t.Error("XRs remain, and nothing looks after them again")
	}
	w.expect(t, corev1.ConditionFalse, commonv1.ReasonTerminatingCompositeResource)
	if len(w.engine.running) == 0 {
		t.Error("no XR controller runs that lets go of the XRs")
	}
	w.crd(t)

	w.reconcile(t)
	if len(w.engine.running) > 0 {
		t.Error("the XR controller still runs")
	}
	w.reconcile(t)
	for _, gone := range []client.Object{&v1.CompositeResourceDefinition{}, &extv1.CustomResourceDefinition{}} {
		if err := w.client.Get(context.Background(), client.ObjectKey{Name: "rooms.example.org"}, gone); !apierrors.IsNotFound(err) {
			t.Errorf("%T: want it to be gone, got error %v", gone, err)
		}
	}
}

// Whatever is wrong with an XRD or its CRD, XRs of a kind that is served are
// reconciled: also by an operator that starts in this state.
func TestXRsOfAServedKindAreReconciledWhateverIsWrong(t *testing.T) {
	refused := apierrors.NewBadRequest("no")
	cases := map[string]struct {
		spoil  func(t *testing.T, w *world)
		reason string
	}{
		"the API server refuses an edit": {
			spoil: func(t *testing.T, w *world) {
				t.Helper()
				xrd := w.xrd(t)
				xrd.Spec.Versions[0].Schema.OpenAPIV3Schema.Raw = []byte(`{"type":"object","description":"edited"}`)
				if err := w.client.Update(context.Background(), xrd); err != nil {
					t.Fatal(err)
				}
				w.refuse = refused
			},
			reason: commonv1.ReasonInvalidDefinition,
		},
		"an edit makes no CRD": {
			spoil: func(t *testing.T, w *world) {
				t.Helper()
				xrd := w.xrd(t)
				xrd.Spec.Versions[0].Schema.OpenAPIV3Schema.Raw = []byte(`{"type":"string"}`)
				if err := w.client.Update(context.Background(), xrd); err != nil {
					t.Fatal(err)
				}
			},
			reason: commonv1.ReasonInvalidDefinition,
		},
		"the CRD is being deleted": {
			spoil: func(t *testing.T, w *world) {
				t.Helper()
				crd := w.crd(t)
				crd.Finalizers = []string{"customresourcecleanup.apiextensions.k8s.io"}
				if err := errors.Join(w.client.Update(context.Background(), crd), w.client.Delete(context.Background(), crd)); err != nil {
					t.Fatal(err)
				}
			},
			reason: ReasonWaitingForCRD,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, roomXRD(v1.ScopeNamespaced))
			w.reconcile(t)
			w.serve(t)
			w.reconcile(t)
			tc.spoil(t, w)
			w.engine.running = nil // as after a restart

			w.reconcile(t)
			w.expect(t, corev1.ConditionFalse, tc.reason)
			if len(w.engine.running) != 1 {
				t.Error("no XR controller runs")
			}
		})
	}
}
