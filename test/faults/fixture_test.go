// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crosswatch-io/crosswatch/test/faults"
)

const (
	token = "a-token"
	seed  = 7
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// apiServer answers every list with nothing, every other request but a watch
// with an object, and sends each watch one event at once and one for each call of
// send.
type apiServer struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*http.Request            // guarded by mu
	watchers map[chan struct{}]struct{} // guarded by mu
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{watchers: map[chan struct{}]struct{}{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// config is the access of a client with a token.
func (s *apiServer) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &rest.Config{Host: s.URL, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "items": []any{}})
	default:
		_ = json.NewEncoder(w).Encode(object())
	}
}

func object() map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"}}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	s.mu.Lock()
	s.watchers[wake] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, wake)
	}()
	for {
		select {
		case <-wake:
			if json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": object()}) != nil {
				return
			}
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// send makes every open watch send an event.
func (s *apiServer) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake := range s.watchers {
		wake <- struct{}{}
	}
}

// asked returns what the API server was asked, in order.
func (s *apiServer) asked() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.requests...)
}

// fixture is a client that reaches an API server by way of a proxy.
type fixture struct {
	t      *testing.T
	server *apiServer
	proxy  *faults.Proxy
	client dynamic.NamespaceableResourceInterface
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, server: newAPIServer(t)}
	var err error
	f.proxy, err = faults.Start(f.server.config(), seed)
	f.must(err)
	t.Cleanup(func() { f.must(f.proxy.Stop()) })
	http, err := rest.HTTPClientFor(f.proxy.Config())
	f.must(err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(http.Transport) })
	client, err := dynamic.NewForConfigAndClient(f.proxy.Config(), http)
	f.must(err)
	f.client = client.Resource(configMaps)
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// list is the error of a list.
func (f *fixture) list() error {
	_, err := f.client.List(f.t.Context(), metav1.ListOptions{})
	return err
}

// remove is the error of a deletion.
func (f *fixture) remove() error {
	return f.client.Namespace("default").Delete(f.t.Context(), "a", metav1.DeleteOptions{})
}

// watch opens a watch and waits for the event that comes at once.
func (f *fixture) watch() watch.Interface {
	f.t.Helper()
	w, err := f.client.Watch(f.t.Context(), metav1.ListOptions{ResourceVersion: "5"})
	f.must(err)
	f.t.Cleanup(w.Stop)
	f.sees(w, watch.Modified)
	return w
}

// sees waits for an event of the type; the empty type is the watch's end.
func (f *fixture) sees(w watch.Interface, want watch.EventType) {
	f.t.Helper()
	select {
	case event := <-w.ResultChan():
		if event.Type != want {
			f.t.Fatalf("the watch sends %q with %v, want %q", event.Type, event.Object, want)
		}
	case <-f.t.Context().Done():
		f.t.Fatalf("the test ended before the watch sent %q", want)
	}
}
