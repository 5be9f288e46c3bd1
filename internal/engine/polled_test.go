// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// aggregated is an API group that the API server forwards to a server which can
// list readings, without resource versions as some do, but not watch them.
type aggregated struct {
	mu    sync.Mutex
	value string // of the one reading; empty: there is none. Guarded by mu
	lists int    // guarded by mu
}

const aggregatedGroup = "aggregated.example.org"

func (a *aggregated) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	if !strings.HasSuffix(r.URL.Path, "/readings") {
		_, _ = fmt.Fprintf(rw, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1","resources":[
			{"name":"readings","kind":"Reading","namespaced":true,"verbs":["get","list"]},
			{"name":"orders","kind":"Order","namespaced":true,"verbs":["create"]}]}`, aggregatedGroup)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lists++
	var items string
	if a.value != "" {
		items = fmt.Sprintf(`{"kind":"Reading","apiVersion":"%s/v1","metadata":{"namespace":"default","name":"a","labels":{"of":"heat"}},"value":%q}`, aggregatedGroup, a.value)
	}
	_, _ = fmt.Fprintf(rw, `{"kind":"ReadingList","apiVersion":"%s/v1","metadata":{},"items":[%s]}`, aggregatedGroup, items)
}

func (a *aggregated) set(value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.value = value
}

func (a *aggregated) listed() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lists
}

// aggregate has the API server forward the group.
func (w *world) aggregate(a *aggregated) {
	w.t.Helper()
	server := httptest.NewTLSServer(a)
	w.t.Cleanup(server.Close)
	ns := w.namespace()
	must(w.t, w.client.Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "aggregated"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}))
	service := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": aggregatedGroup, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
		"service": map[string]any{"namespace": ns, "name": "aggregated", "port": int64(server.Listener.Addr().(*net.TCPAddr).Port)},
	}}}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	service.SetName("v1." + aggregatedGroup)
	must(w.t, w.client.Create(w.t.Context(), service))
	w.t.Cleanup(func() { must(w.t, newClient(w.t).Delete(context.WithoutCancel(w.t.Context()), service)) })
}

func TestAKindThatCanBeListedAndNotWatchedIsPolled(t *testing.T) {
	w := newWorld(t, admin, func(c *engine.Config) { c.Timing = store.Timing{Poll: 100 * time.Millisecond} })
	readings := schema.GroupVersionKind{Group: aggregatedGroup, Version: "v1", Kind: "Reading"}
	orders := schema.GroupVersionKind{Group: aggregatedGroup, Version: "v1", Kind: "Order"}
	a := &aggregated{value: "1"}
	w.aggregate(a)
	c := w.start("xrs", leases)
	w.state(leases, engine.Active)

	_, _ = c.Require(t.Context(), someXR, requires(named(readings, "default", "a")))
	w.state(readings, engine.Unwatchable)
	informer, err := c.Require(t.Context(), someXR, requires(named(readings, "default", "a")))
	must(t, err)
	if got := informer.Get("default", "a"); got == nil || got.Object["value"] != "1" {
		t.Errorf("got %v to read, want the object with value 1", got)
	}
	info := w.engine.Watch(readings)
	if info.Objects != 1 || !strings.Contains(info.Message, "listed about once a minute") {
		t.Errorf("the watch does not say what it does: %+v", info)
	}
	_, err = c.Require(t.Context(), otherXR, requires(dependency.Reference{GVK: readings, Labels: map[string]string{"of": "heat"}}))
	must(t, err)
	w.ranBefore(c, marker)

	listed := a.listed()
	a.set("2")
	w.expect(someXR, otherXR)
	if got := informer.Get("default", "a"); got == nil || got.Object["value"] != "2" {
		t.Errorf("got %v to read, want the object with value 2", got)
	}
	a.set("") // all that a list can tell is that it is gone; what it was, only the watch knows
	w.expect(someXR, otherXR)
	if more := a.listed() - listed; more > 6 {
		t.Errorf("the kind was listed %d times", more)
	}

	// Without a list, there is nothing to read.
	_, err = c.Require(t.Context(), otherXR, requires(named(orders, "default", "a")))
	var watchErr *engine.WatchError
	if !errors.As(err, &watchErr) || watchErr.State != engine.Unwatchable {
		t.Errorf("got %v, want a WatchError that says Unwatchable", err)
	}
}
