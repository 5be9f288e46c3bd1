// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer"
	"github.com/crosswatch-io/crosswatch/internal/composer/fakeapi"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/function"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

type object = map[string]any

var (
	apps = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "apps"}
	key  = types.NamespacedName{Namespace: "team", Name: "shop"}
)

// world is an API server with one XR, the objects that say how it is composed,
// a function, and a session that keeps a real tracker.
type world struct {
	*fakeapi.Server
	*dependency.Tracker
	catalog    catalog
	reconciler *Reconciler
	clock      *clocktesting.FakePassiveClock
	events     []string
	sent       map[string]bool
	settled    int
	refused    int
	cause      *engine.Cause
	circuit    engine.Circuit
	wrote      []string // by runs, of whatever cause
	charged    int      // runs that wrote in answer to something
	results    []string

	respond func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse
	runErr  error
	ttl     time.Duration
	runs    int
}

func newWorld() *world {
	w := &world{
		Server:  fakeapi.New(),
		Tracker: dependency.NewTracker(),
		sent:    map[string]bool{},
		clock:   clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)),
		respond: func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse { return &fnv1.RunFunctionResponse{} },
	}
	w.ttl = 2 * time.Hour
	w.catalog.definition.Name = "apps.example.org"
	w.catalog.compositions = []v1.Composition{composition("apps-small", nil)}
	w.catalog.revisions = []v1.CompositionRevision{revision("apps-small", 1)}
	w.restart()
	w.Edit(apps, bare(), "user", func(o object) { o["spec"] = object{"size": int64(1)} })
	return w
}

// restart forgets what the operator has in memory.
func (w *world) restart() {
	applier := composer.NewApplier(w.Server)
	w.reconciler = newReconciler(Config{
		Client:       &w.catalog,
		Dynamic:      w.Server,
		Composer:     composer.New(composer.Config{Runner: w, Applier: applier, Client: w.Server}),
		Applier:      applier,
		Events:       w,
		Clock:        w.clock,
		SyncInterval: time.Hour,
		Definition:   "apps.example.org",
		Scope:        v1.ScopeNamespaced,
	}, w)
}

func (w *world) reconcile(t *testing.T) (reconcile.Result, error) {
	t.Helper()
	return w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
}

func (w *world) mustReconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (w *world) app() xr.XR { return xr.New(w.Get(apps, key.Namespace, key.Name), false) }

func (w *world) condition(t *testing.T, conditionType string) commonv1.Condition {
	t.Helper()
	c := find(w.app().Conditions(), conditionType)
	if c == nil {
		t.Fatalf("there is no condition %q", conditionType)
	}
	return *c
}

// writes returns the writes since the last call, as "verb resource/subresource".
func (w *world) writes() []string {
	var out []string
	for _, write := range w.Writes() {
		out = append(out, strings.TrimSuffix(write.Verb+" "+write.Resource+"/"+write.Subresource, "/"))
	}
	return out
}

func (w *world) annotate(name, value string) {
	w.Edit(apps, bare(), "user", func(o object) {
		o["metadata"].(object)["annotations"] = object{name: value}
	})
}

func (w *world) delete(t *testing.T) {
	t.Helper()
	if err := w.Server.Resource(apps).Namespace(key.Namespace).Delete(t.Context(), key.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Begin implements session: nothing is ever behind.
func (w *world) Begin(xr types.NamespacedName) (*unstructured.Unstructured, bool) {
	return w.Get(apps, xr.Namespace, xr.Name), true
}

// Cause implements session: what the test says, once.
func (w *world) Cause(types.NamespacedName) *engine.Cause {
	cause := w.cause
	w.cause = nil
	return cause
}
func (w *world) PutBack(_ types.NamespacedName, cause *engine.Cause) { w.cause = cause }
func (w *world) Refused(types.NamespacedName)                        { w.refused++ }
func (w *world) Reconciled(result string)                            { w.results = append(w.results, result) }
func (w *world) Wrote(*unstructured.Unstructured)                    {}
func (w *world) Circuit(types.NamespacedName) engine.Circuit         { return w.circuit }
func (w *world) Settle(types.NamespacedName)                         { w.settled++ }
func (w *world) Resource() (schema.GroupVersionResource, bool)       { return apps, true }

// Ran implements session: it keeps what runs wrote.
func (w *world) Ran(_ types.NamespacedName, cause *engine.Cause, wrote []dependency.Reference) {
	if cause != nil && len(wrote) > 0 {
		w.charged++
	}
	for _, ref := range wrote {
		w.wrote = append(w.wrote, ref.GVK.Kind+" "+ref.Name)
	}
}

func (w *world) Require(_ context.Context, xr types.NamespacedName, r dependency.Requirement) (function.Reader, error) {
	w.Tracker.Require(xr, r)
	return &kept{w, schema.GroupVersionResource{}}, nil
}

func (w *world) Depend(_ context.Context, xr types.NamespacedName, ref dependency.Reference) (composer.Objects, error) {
	w.Tracker.Depend(xr, ref)
	return &kept{w, ref.GVK.GroupVersion().WithResource(strings.ToLower(ref.GVK.Kind) + "s")}, nil
}

type kept struct {
	world    *world
	resource schema.GroupVersionResource
}

func (k *kept) Get(namespace, name string) *unstructured.Unstructured {
	return k.world.Get(k.resource, namespace, name)
}
func (k *kept) List(string, map[string]string) []*unstructured.Unstructured { return nil }
func (k *kept) Resource() schema.GroupVersionResource                       { return k.resource }
func (k *kept) Namespaced() bool                                            { return true }

// Run implements composer.StepRunner; each step requires all clusters.
func (w *world) Run(ctx context.Context, step function.Step) (*function.Answer, error) {
	w.runs++
	clusters := dependency.Requirement{Step: step.Name, Name: "clusters", Reference: dependency.Reference{
		GVK: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Cluster"},
	}}
	if _, err := w.Require(ctx, step.XR, clusters); err != nil {
		return nil, err
	}
	if w.runErr != nil {
		return nil, w.runErr
	}
	return &function.Answer{Response: w.respond(asSeen(step.Request)), Requirements: []dependency.Requirement{clusters}, Expires: w.expires()}, nil
}

// asSeen is a request as a function sees it, once it was encoded and decoded.
func asSeen(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
	encoded, err := proto.Marshal(req)
	if err != nil {
		panic(err)
	}
	seen := &fnv1.RunFunctionRequest{}
	if err := proto.Unmarshal(encoded, seen); err != nil {
		panic(err)
	}
	return seen
}

// Eventf implements events.EventRecorder. Like the real one, it takes an event that
// differs from another in nothing but its note for the same once more.
func (w *world) Eventf(regarding, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	xr := regarding.(*unstructured.Unstructured)
	key := strings.Join([]string{eventType, reason, action, string(xr.GetUID()), xr.GetResourceVersion()}, "/")
	if w.sent[key] {
		return
	}
	w.sent[key] = true
	w.events = append(w.events, fmt.Sprintf("%s %s: %s", eventType, reason, fmt.Sprintf(note, args...)))
}

func (w *world) told() []string {
	told := w.events
	w.events = nil
	return told
}

func bare() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: object{"apiVersion": "example.org/v1", "kind": "App"}}
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	return u
}

func composition(name string, labels map[string]string) v1.Composition {
	var c v1.Composition
	c.Name = name
	c.Labels = labels
	c.Spec.CompositeTypeRef = v1.TypeReference{APIVersion: "example.org/v1", Kind: "App"}
	return c
}

// revision returns a valid revision, named <composition>-<number>.
func revision(composition string, number int64) v1.CompositionRevision {
	var r v1.CompositionRevision
	r.Name = fmt.Sprintf("%s-%d", composition, number)
	r.Labels = map[string]string{v1.LabelCompositionName: composition}
	r.Spec.Revision = number
	r.Spec.CompositeTypeRef = v1.TypeReference{APIVersion: "example.org/v1", Kind: "App"}
	r.Spec.Pipeline = []v1.PipelineStep{{Step: "make", FunctionRef: v1.FunctionReference{Name: "fn"}}}
	r.Status.SetConditions(commonv1.True(commonv1.TypeValidPipeline, commonv1.ReasonValidPipeline))
	return r
}

// catalog reads an XRD, Compositions and revisions.
type catalog struct {
	definition   v1.CompositeResourceDefinition
	compositions []v1.Composition
	revisions    []v1.CompositionRevision
}

func (c *catalog) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch obj := obj.(type) {
	case *v1.CompositeResourceDefinition:
		if key.Name == c.definition.Name {
			*obj = c.definition
			return nil
		}
	case *v1.Composition:
		for _, have := range c.compositions {
			if have.Name == key.Name {
				*obj = have
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *catalog) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	matches := func(have map[string]string) bool {
		return o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(have))
	}
	switch list := list.(type) {
	case *v1.CompositionList:
		for _, have := range c.compositions {
			if matches(have.Labels) {
				list.Items = append(list.Items, have)
			}
		}
	case *v1.CompositionRevisionList:
		for _, have := range c.revisions {
			if matches(have.Labels) {
				list.Items = append(list.Items, have)
			}
		}
	}
	return nil
}

func withStatus(status object) func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	return func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Composite: &fnv1.Resource{Resource: toStruct(object{"status": status})}}}
	}
}

func toStruct(o object) *structpb.Struct {
	s, err := structpb.NewStruct(o)
	if err != nil {
		panic(err)
	}
	return s
}

// expires is when the function's answer does.
func (w *world) expires() time.Time {
	if w.ttl == 0 {
		return time.Time{}
	}
	return w.clock.Now().Add(w.ttl)
}
