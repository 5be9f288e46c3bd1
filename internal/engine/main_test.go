// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/breaker"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
)

// fromClients is what client-go logs, whose logger can't be replaced while
// anything runs.
var fromClients = &lines{}

// admin is the real API server that every test of the package runs on.
var admin *rest.Config

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(fromClients.logger())
	cp, err := controlplane.Start(context.Background(), controlplane.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := cp.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	admin = cp.AdminConfig()
	return m.Run()
}

// tolerance is that of the engines under test: shorter than the time between two
// attempts of an informer, so that the second failure in a row is one too many.
const tolerance = 500 * time.Millisecond

// quickBreaker is that of the engines under test.
var quickBreaker = breaker.Settings{Budget: 3, Refill: 300 * time.Millisecond, LongestPause: 300 * time.Millisecond, Recovery: time.Second}

// soon bounds what should take milliseconds on a busy machine.
const soon = 20 * time.Second

// world is one test's engine, and the XRs that it asked to run.
type world struct {
	t        *testing.T
	engine   *engine.Engine
	client   client.Client
	woken    chan types.NamespacedName
	trackers *dependency.Registry
}

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secrets    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// newWorld runs an engine until the test ends, and then makes sure that nothing
// of it is left. Sweeps run only when a test asks. Settings change what the
// engine works with.
func newWorld(t *testing.T, cfg *rest.Config, settings ...func(*engine.Config)) *world {
	t.Helper()
	before := goleak.IgnoreCurrent()
	httpClient, err := rest.HTTPClientFor(cfg)
	must(t, err)
	dyn, err := dynamic.NewForConfigAndClient(cfg, httpClient)
	must(t, err)
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient)
	must(t, err)

	w := &world{t: t, client: newClient(t), woken: make(chan types.NamespacedName, 10_000), trackers: dependency.NewRegistry()}
	config := engine.Config{
		Dynamic: dyn, Discovery: disco, Trackers: w.trackers, SweepInterval: time.Hour, FailureTolerance: tolerance, Log: logr.Discard(),
		Breaker: quickBreaker,
	}
	for _, set := range settings {
		set(&config)
	}
	w.engine = engine.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
		httpClient.CloseIdleConnections()
		if err := goleak.Find(before, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
			goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run")); err != nil {
			t.Error(err)
		}
	})
	return w
}

// newClient returns an admin's client, which remembers the scope of each kind
// that it comes across.
func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(admin, client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// start starts a controller for XRs of the kind; each run is reported to woken.
func (w *world) start(name string, kind schema.GroupVersionKind) *engine.Controller {
	w.t.Helper()
	return w.startWith(name, kind, func(*engine.Controller, types.NamespacedName) {})
}

// startWith is start with something to do in each run.
func (w *world) startWith(name string, kind schema.GroupVersionKind, run func(*engine.Controller, types.NamespacedName)) *engine.Controller {
	w.t.Helper()
	c, err := w.engine.Start(name, engine.ControllerOptions{
		Kind:                    kind,
		MaxConcurrentReconciles: 4,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second),
		Reconciler: func(c *engine.Controller) reconcile.Reconciler {
			return reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
				run(c, r.NamespacedName)
				w.woken <- r.NamespacedName
				return reconcile.Result{}, nil
			})
		},
	})
	must(w.t, err)
	return c
}

// expect waits until the XRs run, in whatever order, and ignores others.
func (w *world) expect(names ...types.NamespacedName) {
	w.t.Helper()
	missing := sets.New(names...)
	deadline := time.After(soon)
	for missing.Len() > 0 {
		select {
		case got := <-w.woken:
			missing.Delete(got)
		case <-deadline:
			w.t.Fatalf("%v were not woken", missing.UnsortedList())
		}
	}
}

// ranBefore returns the XRs that ran up to the moment when a marker, enqueued now,
// has done so twice. An event delivered before is in front of it the first time, or
// the second if its XR ran just before and so lets others go first.
func (w *world) ranBefore(c *engine.Controller, marker types.NamespacedName) []types.NamespacedName {
	w.t.Helper()
	return append(w.ranBeforeOnce(c, marker), w.ranBeforeOnce(c, marker)...)
}

func (w *world) ranBeforeOnce(c *engine.Controller, marker types.NamespacedName) []types.NamespacedName {
	w.t.Helper()
	c.Enqueue(marker)
	var ran []types.NamespacedName
	deadline := time.After(soon)
	for {
		select {
		case got := <-w.woken:
			if got == marker {
				return ran
			}
			ran = append(ran, got)
		case <-deadline:
			w.t.Fatalf("the marker %s did not run", marker)
		}
	}
}

// state waits until the kind's watch is in the state; "" means not in service.
func (w *world) state(gvk schema.GroupVersionKind, want engine.State) {
	w.t.Helper()
	var got engine.State
	w.eventually(func() bool {
		got = ""
		for _, info := range w.engine.Watches() {
			if info.GVK == gvk {
				got = info.State
			}
		}
		return got == want
	}, func() string { return fmt.Sprintf("the watch of %s is %q, want %q", gvk, got, want) })
}

func (w *world) eventually(ok func() bool, what func() string) {
	w.t.Helper()
	eventually(w.t, ok, what)
}

func eventually(t *testing.T, ok func() bool, what func() string) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(soon)
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal(what())
		}
	}
}

func (w *world) namespace() string {
	w.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "engine-"}}
	must(w.t, w.client.Create(w.t.Context(), ns))
	return ns.Name
}

func (w *world) create(gvk schema.GroupVersionKind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	w.t.Helper()
	u := object(gvk, namespace, name)
	u.SetLabels(labels)
	must(w.t, w.client.Create(w.t.Context(), u))
	return u
}

func object(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func named(gvk schema.GroupVersionKind, namespace, name string) dependency.Reference {
	return dependency.Reference{GVK: gvk, Namespace: namespace, Name: name}
}

func requires(ref dependency.Reference) dependency.Requirement {
	return dependency.Requirement{Step: "step", Name: "it", From: dependency.Resources, Reference: ref}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
