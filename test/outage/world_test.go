// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

const (
	// patience bounds what must happen. It is longer than the time after which a
	// watch is tried again that failed for minutes.
	patience = 60 * time.Second
	// each is how much longer what happens to many XRs may take, for each of them.
	each = 50 * time.Millisecond

	group = "e2e.crosswatch.io"
)

var gadgets = schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}

// world is what one test has to itself: a namespace, an XR kind with a Composition,
// and the function of that.
type world struct {
	t         *testing.T
	admin     client.WithWatch
	namespace string
	kind      schema.GroupVersionKind
	server    *functions.Server
	name      string // of the XRD, and of its DependencyWatchStatus
}

// newWorld makes a world whose XRs the function composes. It goes with the control
// plane.
func newWorld(t *testing.T, kind string, handler functions.Handler) *world {
	t.Helper()
	w := &world{admin: cluster.Admin, kind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}}
	w.bind(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "outage-"}}
	w.must(w.admin.Create(t.Context(), ns))
	w.namespace = ns.Name
	w.serve(strings.ToLower(kind), handler)
	return w
}

// bind makes the world that of the test, until that ends.
func (w *world) bind(t *testing.T) {
	t.Helper()
	w.t = t
	t.Cleanup(w.goesOn)
}

// goesOn fails the test if the operator ended.
func (w *world) goesOn() {
	w.t.Helper()
	select {
	case err := <-cluster.ended:
		cluster.ended <- err
		w.t.Errorf("the operator ended: %v", err)
	default:
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// serve serves the function and makes it known.
func (w *world) serve(name string, handler functions.Handler) {
	w.t.Helper()
	var err error
	w.server, err = cluster.Serve(handler)
	w.must(err)
	cluster.servers = append(cluster.servers, w.server)
	_, err = cluster.Announce(w.t.Context(), name, w.server.Target())
	w.must(err)
}

// define makes the XRD of the world's kind, and its Composition of one step.
func (w *world) define() {
	w.t.Helper()
	const schema = `{"type":"object","properties":{
		"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
		"status":{"type":"object","properties":{"value":{"type":"string"},"colored":{"type":"string"},"reading":{"type":"string"}}}}}`
	xrd := installation.Definition(group, w.kind.Kind, v1.ScopeNamespaced, schema)
	w.name = xrd.Name
	w.create(xrd)
	function := strings.ToLower(w.kind.Kind)
	w.create(installation.Composition(w.kind, v1.PipelineStep{Step: function, FunctionRef: v1.FunctionReference{Name: function}}))
}

// first creates the first XR of a kind as soon as the API server takes it.
func (w *world) first(xr *unstructured.Unstructured) {
	w.t.Helper()
	w.eventually("the first XR to be taken", func() (bool, string) {
		err := w.admin.Create(w.t.Context(), xr)
		return err == nil, fmt.Sprint(err)
	})
}

// counts waits until the operator tells, as metrics and in the
// DependencyWatchStatus, that it knows and tracks that many XRs.
func (w *world) counts(xrs int) {
	w.t.Helper()
	w.within(patience+time.Duration(xrs)*each, fmt.Sprintf("%d XRs to be known and tracked", xrs), func() (bool, string) {
		told := &watchv1alpha1.DependencyWatchStatus{}
		w.must(client.IgnoreNotFound(w.admin.Get(w.t.Context(), client.ObjectKey{Name: w.name}, told)))
		got := []int{
			int(told.Status.Composites.Known), int(told.Status.Composites.Tracked),
			w.gauge("crosswatch_composites_known", "controller", w.name), w.gauge("crosswatch_composites_tracked", "controller", w.name),
		}
		return !slices.ContainsFunc(got, func(n int) bool { return n != xrs }), fmt.Sprint(got)
	})
}

// create creates the object.
func (w *world) create(obj client.Object) {
	w.t.Helper()
	w.must(w.admin.Create(w.t.Context(), obj))
}

// remove asks for the object's deletion.
func (w *world) remove(obj client.Object) {
	w.t.Helper()
	w.must(client.IgnoreNotFound(w.admin.Delete(w.t.Context(), obj)))
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

// list returns the objects of a kind in the world's namespace by name.
func (w *world) list(gvk schema.GroupVersionKind) map[string]*unstructured.Unstructured {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	w.must(w.admin.List(w.t.Context(), list, client.InNamespace(w.namespace)))
	byName := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		byName[list.Items[i].GetName()] = &list.Items[i]
	}
	return byName
}

// condition returns a condition of an object as it is on the API server now; empty
// if it has none.
func (w *world) condition(gvk schema.GroupVersionKind, name, kind string) map[string]any {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	w.must(client.IgnoreNotFound(w.admin.Get(w.t.Context(), client.ObjectKey{Name: name}, u)))
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m
		}
	}
	return map[string]any{}
}

// is waits until a condition of a cluster-scoped object has the status.
func (w *world) is(gvk schema.GroupVersionKind, name, kind, status string) map[string]any {
	w.t.Helper()
	var c map[string]any
	w.eventually(fmt.Sprintf("%s of %s %s to be %s", kind, gvk.Kind, name, status), func() (bool, string) {
		c = w.condition(gvk, name, kind)
		return c["status"] == status, fmt.Sprint(c)
	})
	return c
}

// eventually waits until ok is true. The second value says what was seen last.
func (w *world) eventually(what string, ok func() (bool, string)) {
	w.t.Helper()
	w.within(patience, what, ok)
}

// within is eventually with another patience.
func (w *world) within(most time.Duration, what string, ok func() (bool, string)) {
	w.t.Helper()
	const often = 50 * time.Millisecond
	start := time.Now()
	for {
		done, seen := ok()
		if done {
			return
		}
		if time.Since(start) > most {
			w.t.Fatalf("gave up waiting for %s; last seen: %s", what, seen)
		}
		<-time.After(often)
	}
}

// always checks, for that time, what must not become false.
func (w *world) always(what string, during time.Duration, ok func() (bool, string)) {
	w.t.Helper()
	const often = 100 * time.Millisecond
	for start := time.Now(); time.Since(start) < during; <-time.After(often) {
		if held, seen := ok(); !held {
			w.t.Errorf("%s does not hold: %s", what, seen)
			return
		}
	}
}

// ready is what the operator's readiness probe says.
func ready(t *testing.T) (ok bool, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+cluster.probes+"/readyz?verbose", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode == http.StatusOK, string(content)
}

// gauge is the sum of a metric's series that have the label's value.
func (w *world) gauge(name, label, value string) int {
	w.t.Helper()
	families, err := metrics.Registry.Gather()
	w.must(err)
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					sum += m.GetGauge().GetValue()
				}
			}
		}
	}
	return int(sum)
}

// watches is how many watches are in the state.
func (w *world) watches(state string) int { return w.gauge("crosswatch_watches", "state", state) }

// long skips a test of full size unless it is asked for.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("SOAK") == "" {
		t.Skip("SOAK is not set")
	}
}
