// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer/fakeapi"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/function"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// object is JSON, as tests write it.
type object = map[string]any

var (
	things   = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "things"}
	clusters = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "clusters"}
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	apps     = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "apps"}
)

const (
	namespace = "team"
	appName   = "shop"
)

// world is an API server with an XR, and what a run of that XR meets: informers
// that are never behind, and functions that a test writes.
type world struct {
	*fakeapi.Server
	composer *Composer
	scope    v1.Scope
	pipeline []v1.PipelineStep

	respond map[string]func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse
	// watches are the kinds that can't be watched.
	watches map[string]engine.State
	// recorded is, in order, what was recorded, read and written.
	recorded []string
}

func newWorld(scope v1.Scope, steps ...string) *world {
	w := &world{
		Server:  fakeapi.New(),
		scope:   scope,
		respond: map[string]func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse{},
		watches: map[string]engine.State{},
	}
	for _, step := range steps {
		w.pipeline = append(w.pipeline, v1.PipelineStep{Step: step, FunctionRef: v1.FunctionReference{Name: "fn-" + step}})
	}
	w.restart()
	w.Edit(apps, w.bareApp(), "user", func(o object) { o["spec"] = object{"size": int64(1)} })
	return w
}

// restart forgets what the operator has in memory.
func (w *world) restart() {
	w.composer = New(Config{Runner: w, Applier: NewApplier(w), Client: w})
}

func (w *world) bareApp() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: object{"apiVersion": "example.org/v1", "kind": "App"}}
	u.SetName(appName)
	if w.scope == v1.ScopeNamespaced {
		u.SetNamespace(namespace)
	}
	return u
}

func (w *world) app() xr.XR {
	bare := w.bareApp()
	return xr.New(w.Get(apps, bare.GetNamespace(), bare.GetName()), w.scope == v1.ScopeLegacyCluster)
}

func (w *world) compose(t *testing.T) (Output, error) {
	t.Helper()
	return w.composer.Compose(t.Context(), Input{
		XR:       w.app(),
		Resource: apps,
		Scope:    w.scope,
		Revision: &v1.CompositionRevision{Spec: v1.CompositionRevisionSpec{Pipeline: w.pipeline}},
		Record:   w,
	})
}

// desires makes a step return these resources, which are ready.
func (w *world) desires(step string, resources map[string]object) {
	w.respond[step] = func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		return desiring(resources)
	}
}

func desiring(resources map[string]object) *fnv1.RunFunctionResponse {
	state := &fnv1.State{Resources: map[string]*fnv1.Resource{}}
	for name, r := range resources {
		state.Resources[name] = &fnv1.Resource{Resource: toStruct(r), Ready: fnv1.Ready_READY_TRUE}
	}
	return &fnv1.RunFunctionResponse{Desired: state}
}

func toStruct(o object) *structpb.Struct {
	s, err := structpb.NewStruct(o)
	if err != nil {
		panic(err)
	}
	return s
}

func thing(name string, spec object) object {
	o := object{"apiVersion": "example.org/v1", "kind": "Thing", "spec": spec}
	if name != "" {
		o["metadata"] = object{"name": name}
	}
	return o
}

// writes returns the writes since the last call, as "verb resource/name".
func (w *world) writes() []string {
	var out []string
	for _, write := range w.Writes() {
		out = append(out, write.Verb+" "+write.Resource+"/"+write.Name)
	}
	return out
}

// Run implements StepRunner.
func (w *world) Run(_ context.Context, step function.Step) (*function.Answer, error) {
	w.recorded = append(w.recorded, "run "+step.Name)
	return &function.Answer{Response: w.respond[step.Name](asSeen(step.Request)), Requirements: step.Bootstrap}, nil
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

// Requirements implements function.Requirer.
func (w *world) Requirements(types.NamespacedName, string) []dependency.Requirement { return nil }

// Require implements function.Requirer.
func (w *world) Require(_ context.Context, _ types.NamespacedName, r dependency.Requirement) (function.Reader, error) {
	w.recorded = append(w.recorded, "require "+r.Reference.String())
	return w.watch(r.Reference.GVK)
}

// Depend implements Recorder.
func (w *world) Depend(_ context.Context, _ types.NamespacedName, ref dependency.Reference) (Objects, error) {
	w.recorded = append(w.recorded, "depend "+ref.String())
	return w.watch(ref.GVK)
}

func (w *world) watch(gvk schema.GroupVersionKind) (*kept, error) {
	if state, ok := w.watches[gvk.Kind]; ok {
		return nil, &engine.WatchError{GVK: gvk, State: state, Message: string(state)}
	}
	resource := gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
	return &kept{world: w, resource: resource}, nil
}

// kept is an informer that is never behind.
type kept struct {
	world    *world
	resource schema.GroupVersionResource
}

func (k *kept) Get(namespace, name string) *unstructured.Unstructured {
	return k.world.Get(k.resource, namespace, name)
}
func (k *kept) List(string, map[string]string) []*unstructured.Unstructured { return nil }
func (k *kept) Resource() schema.GroupVersionResource                       { return k.resource }
func (k *kept) Namespaced() bool                                            { return k.resource.Resource != clusters.Resource }

// nested returns what an object has at a path.
func nested(o *unstructured.Unstructured, path ...string) any {
	if o == nil {
		return nil
	}
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return runtime.DeepCopyJSONValue(v)
}

func contains(t *testing.T, where, what string) {
	t.Helper()
	if !strings.Contains(where, what) {
		t.Errorf("%q does not name %q", where, what)
	}
}

func before(t *testing.T, order []string, first, second string) {
	t.Helper()
	at := func(what string) int {
		return slices.IndexFunc(order, func(s string) bool { return strings.HasPrefix(s, what) })
	}
	if at(first) < 0 || at(second) < 0 || at(first) > at(second) {
		t.Errorf("want %q before %q in %q", first, second, order)
	}
}
