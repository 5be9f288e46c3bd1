// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

const (
	// patience bounds what must happen, on a machine that is busy otherwise.
	patience = 60 * time.Second
	// promptly is what the product promises of a change's effect.
	promptly = time.Second
	// quietFor is how long nothing may happen before a system counts as settled.
	quietFor = 500 * time.Millisecond

	group = "e2e.crosswatch.io"
)

var gadgets = schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}

type configMap = corev1.ConfigMap

// world is what one test has to itself on the shared cluster: a namespace, and
// whatever it makes, which is gone when the test is.
type world struct {
	t         *testing.T
	namespace string
	admin     client.WithWatch
	auditLog  controlplane.AuditLog // from the test's beginning on
	operators []interface{ stop() }
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, admin: cluster.Admin}
	// Registered first, this runs last: what the test made needs an operator to
	// be deleted.
	t.Cleanup(func() {
		for _, o := range w.operators {
			o.stop()
		}
	})
	var err error
	w.auditLog, err = cluster.auditLog.FromNow()
	w.must(err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	w.must(w.admin.Create(t.Context(), ns))
	w.namespace = ns.Name
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create creates the object now and deletes it when the test ends.
func (w *world) create(obj client.Object) {
	w.t.Helper()
	w.must(w.admin.Create(w.t.Context(), obj))
	w.t.Cleanup(func() { w.remove(obj) })
}

// remove deletes the object and waits until it is gone.
func (w *world) remove(obj client.Object) {
	w.t.Helper()
	ctx := w.t.Context()
	if ctx.Err() != nil {
		ctx = cleanupContext(w.t)
	}
	w.must(client.IgnoreNotFound(w.admin.Delete(ctx, obj)))
	w.eventually(fmt.Sprintf("%T %s to be gone", obj, obj.GetName()), func() (bool, string) {
		err := w.admin.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// eventually waits until ok is true. The second value says what was seen last. It
// asks less often the longer it takes: on a small machine, asking slows down what
// is waited for.
func (w *world) eventually(what string, ok func() (bool, string)) time.Duration {
	w.t.Helper()
	const often, seldom = 3 * time.Millisecond, 50 * time.Millisecond
	start := time.Now()
	for {
		done, seen := ok()
		took := time.Since(start)
		if done {
			return took
		}
		if took > patience {
			w.t.Fatalf("gave up waiting for %s; last seen: %s", what, seen)
		}
		<-time.After(min(max(took/20, often), seldom))
	}
}

// promptly does something and fails unless its effect shows within a second.
func (w *world) promptly(what string, change func(), ok func() (bool, string)) {
	w.t.Helper()
	change()
	if took := w.eventually(what, ok); took > promptly {
		w.t.Errorf("%s took %s, want at most %s", what, took.Round(time.Millisecond), promptly)
	}
}

// settled waits until the number has not changed for a while, and returns it.
func (w *world) settled(number func() int) int {
	w.t.Helper()
	last, since := number(), time.Now()
	w.eventually("the system to settle", func() (bool, string) {
		if now := number(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > quietFor, strconv.Itoa(last)
	})
	return last
}

// function serves a function behind mutual TLS and makes it known under the
// name, as an active revision with an endpoint.
func (w *world) function(name string, handler functions.Handler) *functions.Server {
	w.t.Helper()
	server, err := cluster.Serve(handler)
	w.must(err)
	w.t.Cleanup(server.Stop)
	w.announce(name, server.Target())
	return server
}

// announce makes a function known that is served at host:port.
func (w *world) announce(name, target string) {
	w.t.Helper()
	created, err := cluster.Announce(w.t.Context(), name, target)
	for _, obj := range created {
		w.t.Cleanup(func() { w.remove(obj) })
	}
	w.must(err)
}

// step is one step of a pipeline, named after its function.
func step(function string, input map[string]any) v1.PipelineStep {
	s := v1.PipelineStep{Step: function, FunctionRef: v1.FunctionReference{Name: function}}
	if input != nil {
		input["apiVersion"], input["kind"] = "e2e.crosswatch.io/v1", "Input"
		raw, err := json.Marshal(input)
		if err != nil {
			panic(err)
		}
		s.Input = &runtime.RawExtension{Raw: raw}
	}
	return s
}

// composing returns a world in which an operator runs, and one function composes
// the kind, and that function's server.
func composing(t *testing.T, name string, handler functions.Handler, settings ...setting) (*world, schema.GroupVersionKind, *functions.Server) {
	t.Helper()
	w := newWorld(t)
	w.operate(settings...)
	server := w.function(name, handler)
	kind := w.shared(sample)
	w.compose(kind, step(name, nil))
	return w, kind, server
}

// compose makes the test's Composition of an XR kind, after which there can be
// XRs.
func (w *world) compose(gvk schema.GroupVersionKind, steps ...v1.PipelineStep) *v1.Composition {
	w.t.Helper()
	c := installation.Composition(gvk, steps...)
	c.Name += "-" + w.namespace // other tests' revisions of the kind may be there still
	w.create(c)
	w.outgrow(gvk)
	return c
}

// xr creates an XR in the test's namespace.
func (w *world) xr(gvk schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	u := w.object(gvk, name)
	if spec == nil {
		spec = map[string]any{} // an XR without one is invalid
	}
	u.Object["spec"] = spec
	w.create(u)
	return u
}

func (w *world) object(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(w.namespace)
	u.SetName(name)
	return u
}

func (w *world) configMap(name string, labels, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: labels}, Data: data}
}

// update changes an object as it is now, again if somebody else just did.
func update[T client.Object](w *world, obj T, change func(T)) {
	w.t.Helper()
	w.eventually("an update without a conflict", func() (bool, string) {
		w.must(w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj))
		change(obj)
		err := w.admin.Update(w.t.Context(), obj)
		if !apierrors.IsConflict(err) {
			w.must(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// field reads a field of the object as it is on the API server now; nil if
// there is none.
func (w *world) field(obj client.Object, path ...string) any {
	w.t.Helper()
	u := w.live(obj)
	value, _, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	if err != nil {
		return nil
	}
	return value
}

// live returns the object as it is on the API server now; empty if there is none.
func (w *world) live(obj client.Object) *unstructured.Unstructured {
	w.t.Helper()
	gvk, err := w.admin.GroupVersionKindFor(obj)
	w.must(err)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	w.must(client.IgnoreNotFound(w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(obj), u)))
	return u
}

// has is a condition for eventually: the field has the value.
func (w *world) has(obj client.Object, want any, path ...string) func() (bool, string) {
	return func() (bool, string) {
		got := w.field(obj, path...)
		return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprintf("%s = %v", strings.Join(path, "."), got)
	}
}

// conditionOf returns a condition of the object; empty if it has none.
func (w *world) conditionOf(obj client.Object, kind string) map[string]any {
	w.t.Helper()
	return conditionIn(w.live(obj), kind)
}

func conditionIn(obj *unstructured.Unstructured, kind string) map[string]any {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m
		}
	}
	return map[string]any{}
}

// condition waits until a condition of the object has the status and reason,
// and returns its message.
func (w *world) condition(obj client.Object, kind, status, reason string) string {
	w.t.Helper()
	var c map[string]any
	w.eventually(fmt.Sprintf("%s to be %s=%s (%s)", obj.GetName(), kind, status, reason), func() (bool, string) {
		c = w.conditionOf(obj, kind)
		return c["status"] == status && c["reason"] == reason, fmt.Sprint(c)
	})
	message, _ := c["message"].(string)
	return message
}

// ready waits until the XR is composed and ready.
func (w *world) ready(xrs ...*unstructured.Unstructured) {
	w.t.Helper()
	for _, xr := range xrs {
		w.condition(xr, "Synced", "True", "ReconcileSuccess")
		w.condition(xr, "Ready", "True", "Available")
	}
}

func key(obj client.Object) types.NamespacedName {
	return client.ObjectKeyFromObject(obj)
}
