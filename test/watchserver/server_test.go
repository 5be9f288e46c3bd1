// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchserver_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crosswatch-io/crosswatch/test/watchserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	things = watchserver.Kind{
		GVK:        schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"},
		Resource:   "things",
		Namespaced: true,
	}
	first = types.NamespacedName{Namespace: "ns", Name: "first"}
)

// world is a server and a real client of it.
type world struct {
	*watchserver.Server
	t      *testing.T
	cfg    *rest.Config
	http   *http.Client
	client dynamic.ResourceInterface
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server, err := watchserver.Start(t.Context())
	must(t, err)
	cfg := server.Config()
	httpClient, err := rest.HTTPClientFor(cfg)
	must(t, err)
	dyn, err := dynamic.NewForConfigAndClient(cfg, httpClient)
	must(t, err)
	t.Cleanup(func() {
		must(t, server.Close())
		httpClient.CloseIdleConnections()
	})
	server.Serve(things)
	return &world{Server: server, t: t, cfg: cfg, http: httpClient, client: dyn.Resource(things.GVK.GroupVersion().WithResource(things.Resource))}
}

func thing(name types.NamespacedName, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Thing",
		"metadata": map[string]any{"namespace": name.Namespace, "name": name.Name},
		"spec":     map[string]any{"value": value},
	}}
}

// put stores a thing and returns its resource version.
func (w *world) put(name types.NamespacedName, value string) string {
	w.t.Helper()
	stored, _, err := w.Put(thing(name, value))
	must(w.t, err)
	return stored.GetResourceVersion()
}

func (w *world) watch(from string) watch.Interface {
	w.t.Helper()
	open, err := w.client.Watch(context.Background(), metav1.ListOptions{ResourceVersion: from})
	must(w.t, err)
	w.t.Cleanup(open.Stop)
	return open
}

// next returns what a watch says, which is closed if it says nothing more.
func (w *world) next(open watch.Interface) (event watch.Event, isOpen bool) {
	w.t.Helper()
	select {
	case event, isOpen = <-open.ResultChan():
		return event, isOpen
	case <-time.After(20 * time.Second):
		w.t.Fatal("the watch says nothing")
		return watch.Event{}, false
	}
}

func (w *world) expect(open watch.Interface, what watch.EventType, version string) {
	w.t.Helper()
	event, isOpen := w.next(open)
	if !isOpen || event.Type != what {
		w.t.Fatalf("the watch says %+v, want %s", event, what)
	}
	if got := event.Object.(*unstructured.Unstructured).GetResourceVersion(); got != version {
		w.t.Errorf("%s of version %s, want %s", what, got, version)
	}
}

func TestAWatchTellsEveryChangeSinceTheVersionItStartsFrom(t *testing.T) {
	w := newWorld(t)
	before := w.put(first, "a")
	created := w.put(types.NamespacedName{Namespace: "ns", Name: "second"}, "b")
	changed := w.put(first, "c")
	if again := w.put(first, "c"); again != changed {
		t.Errorf("a write that changes nothing made version %s of %s", again, changed)
	}
	open := w.watch(before)
	w.expect(open, watch.Added, created)
	w.expect(open, watch.Modified, changed)
	if !w.Delete(things.GVK, first) {
		t.Error("there was nothing to delete")
	}
	if event, _ := w.next(open); event.Type != watch.Deleted {
		t.Errorf("the watch says %+v, want a deletion", event)
	}
}

func TestAListHoldsWhatThereIs(t *testing.T) {
	w := newWorld(t)
	w.put(first, "a")
	version := w.put(first, "b")
	list, err := w.client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].GetResourceVersion() != version || list.GetResourceVersion() != version {
		t.Errorf("listed %+v, want one of version %s", list, version)
	}
}

func TestOnlyWhoComesTooLateHasToList(t *testing.T) {
	w := newWorld(t)
	old := w.put(first, "a")
	present := w.put(first, "b")
	w.Compact(things.GVK)
	event, _ := w.next(w.watch(old))
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("the watch says %+v, want that its version has expired", event)
	}
	open := w.watch(present)
	w.expect(open, watch.Modified, w.put(first, "c"))
}

func TestAWriteOfWhatIsAnotherByNowIsAConflict(t *testing.T) {
	w := newWorld(t)
	stored, _, err := w.Put(thing(first, "a"))
	must(t, err)
	stale := stored.DeepCopy()
	w.put(first, "b")
	if _, _, err := w.Put(stale.DeepCopy()); !apierrors.IsConflict(err) {
		t.Errorf("an older version was written: %v", err)
	}
	w.Delete(things.GVK, first)
	if _, _, err := w.Put(stale.DeepCopy()); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted object was written: %v", err)
	}
	w.put(first, "c")
	stale.SetResourceVersion("")
	if _, _, err := w.Put(stale); !apierrors.IsConflict(err) {
		t.Errorf("another object of that name was written: %v", err)
	}
}

func TestARefusalHoldsUntilItIsTakenBack(t *testing.T) {
	w := newWorld(t)
	version := w.put(first, "a")
	open := w.watch(version)
	for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		w.Refuse(things.GVK, status)
		_, err := w.client.List(t.Context(), metav1.ListOptions{})
		if got := apierrors.ReasonForError(err); status == http.StatusForbidden && got != metav1.StatusReasonForbidden || err == nil {
			t.Errorf("a list was answered with %v, want status %d", err, status)
		}
	}
	// Nobody asks an open watch for its rights.
	w.expect(open, watch.Modified, w.put(first, "b"))
	w.Refuse(things.GVK, 0)
	_, err := w.client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
}

func TestWhatHangsIsAnsweredLater(t *testing.T) {
	w := newWorld(t)
	w.Hang(things.GVK, true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.client.List(ctx, metav1.ListOptions{}); err == nil {
		t.Fatal("a list was answered that should hang")
	}
	answered := make(chan error, 1)
	go func() {
		_, err := w.client.List(context.Background(), metav1.ListOptions{})
		answered <- err
	}()
	w.Hang(things.GVK, false)
	must(t, <-answered)
}

func TestAKindThatIsWithdrawnIsGoneWithItsObjects(t *testing.T) {
	w := newWorld(t)
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(w.cfg, w.http)
	must(t, err)
	open := w.watch(w.put(first, "a"))
	w.Withdraw(things.GVK)
	if event, isOpen := w.next(open); isOpen {
		t.Errorf("the watch says %+v, want its end", event)
	}
	if _, err := w.client.List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a list was answered with %v, want that the kind is not found", err)
	}
	resources, err := disco.ServerResourcesForGroupVersion("example.org/v1")
	must(t, err)
	if len(resources.APIResources) != 0 {
		t.Errorf("still discovered: %+v", resources.APIResources)
	}
	w.Serve(things)
	list, err := w.client.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 0 {
		t.Errorf("still there: %+v", list.Items)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
