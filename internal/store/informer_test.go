// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crosswatch-io/crosswatch/internal/store"
)

var widgets = store.Kind{
	GVK:      schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"},
	Resource: schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"},
	Listable: true, Watchable: true,
}

// listener tells of failures whoever waits for one.
type listener struct{ failed chan struct{} }

func (listener) OnEvent(_, _ *unstructured.Unstructured) {}

func (l listener) OnFailure(error) {
	select {
	case l.failed <- struct{}{}:
	default:
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func refuse(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func clientOf(t *testing.T, transport http.RoundTripper) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://127.0.0.1:1", QPS: -1}, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAnInformerThatIsStoppedBeforeItStartsEnds(t *testing.T) {
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		var stops sync.WaitGroup
		stops.Go(cancel)
		informer, err := store.Start(ctx, clientOf(t, roundTripper(refuse)), widgets, listener{}, store.Timing{})
		if err != nil {
			t.Fatal(err)
		}
		stops.Go(informer.Stop)
		informer.Stop()
		stops.Wait()
		if informer.Len() != 0 || informer.Get("", "a") != nil {
			t.Error("an informer that never started has objects")
		}
	}
}

// passing are the ways in which an API server does not get to judge a request.
var passing = map[string]roundTripper{
	"no connection is made": refuse,
	"there is too much to do": func(r *http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		recorder.WriteHeader(http.StatusTooManyRequests)
		response := recorder.Result()
		response.Request = r
		return response, nil
	},
}

// Otherwise, whoever waits for the stop would wait for the next attempt.
func TestAnInformerStopsAtOnceHoweverOftenItFailed(t *testing.T) {
	for name, transport := range passing {
		t.Run(name, func(t *testing.T) {
			h := listener{make(chan struct{})}
			informer, err := store.Start(t.Context(), clientOf(t, transport), widgets, h, store.Timing{})
			if err != nil {
				t.Fatal(err)
			}
			for range 4 { // the next pause is longer than a stop may take
				select {
				case <-h.failed:
				case <-time.After(10 * time.Second):
					t.Fatal("nobody is told of the failures")
				}
			}
			begin := time.Now()
			informer.Stop()
			if took := time.Since(begin); took > 200*time.Millisecond {
				t.Errorf("the stop took %s", took)
			}
		})
	}
}

// Otherwise, the process could not end during an outage.
func TestAnInformerOfAManagerStopsAtOnceHoweverOftenItFailed(t *testing.T) {
	for name, transport := range passing {
		t.Run(name, func(t *testing.T) {
			tried := make(chan struct{})
			resource := clientOf(t, transport).Resource(widgets.Resource)
			informer := store.NewInformer(&cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return resource.List(ctx, o)
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					select {
					case tried <- struct{}{}:
					case <-ctx.Done():
					}
					return resource.Watch(ctx, o)
				},
			}, &unstructured.Unstructured{}, 0, cache.Indexers{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				informer.RunWithContext(ctx)
			}()
			for range 5 { // the next pause is longer than a stop may take
				select {
				case <-tried:
				case <-time.After(10 * time.Second):
					t.Fatal("it does not try again")
				}
			}
			begin := time.Now()
			cancel()
			<-ended
			if took := time.Since(begin); took > 200*time.Millisecond {
				t.Errorf("the stop took %s", took)
			}
		})
	}
}
