// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// outage makes the API server fail for one resource, watches that are open
// included, from begin to end.
type outage struct {
	resource string
	// answer is what there is instead of the API server's; an error of it if nil.
	answer http.RoundTripper
	next   http.RoundTripper

	mu     sync.Mutex
	broken bool                 // guarded by mu
	failed bool                 // a request did; guarded by mu
	open   []context.CancelFunc // of requests about the resource; guarded by mu
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/"+o.resource) {
		return o.next.RoundTrip(r)
	}
	o.mu.Lock()
	if o.broken {
		o.failed = true
		o.mu.Unlock()
		if o.answer != nil {
			return o.answer.RoundTrip(r)
		}
		return status(http.StatusInternalServerError).RoundTrip(r)
	}
	defer o.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	o.open = append(o.open, cancel)
	return o.next.RoundTrip(r.WithContext(ctx))
}

// awaitRequest waits until a request has failed.
func (o *outage) awaitRequest(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.failed
	}, func() string { return "nothing was asked" })
}

func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = true
	for _, cancel := range o.open {
		cancel()
	}
	o.open = nil
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = false
}

// through returns an admin's access by way of the transport.
func through(wrap func(next http.RoundTripper) http.RoundTripper) *rest.Config {
	cfg := rest.CopyConfig(admin)
	cfg.Wrap(wrap)
	return cfg
}

func TestAWatchThatGetsNoFurtherCountsAsFailedAndMissesNothing(t *testing.T) {
	o := &outage{resource: "configmaps"}
	w := newWorld(t, through(func(next http.RoundTripper) http.RoundTripper {
		o.next = next
		return o
	}))
	t.Cleanup(o.begin) // no request is left open
	ns := w.namespace()
	c := w.start("xrs", secrets)
	_, err := c.Require(t.Context(), someXR, requires(named(configMaps, ns, "a")))
	must(t, err)
	w.state(configMaps, engine.Active)
	w.ranBefore(c, marker)

	o.begin()
	w.state(configMaps, engine.Failed)
	w.expect(someXR) // it is blind now, and has to say so
	w.create(configMaps, ns, "a", nil)

	o.end()
	w.state(configMaps, engine.Active)
	w.expect(someXR)
	if w.engine.Watch(configMaps).Objects == 0 {
		t.Error("the watch holds nothing after the outage")
	}
}

func TestXRsThatWereReplacedWhileNobodyWatchedAreNotSettled(t *testing.T) {
	o := &outage{resource: "configmaps"}
	w := newWorld(t, through(func(next http.RoundTripper) http.RoundTripper {
		o.next = next
		return o
	}))
	t.Cleanup(o.begin)
	ns := w.namespace()
	c := w.start("xrs", configMaps)
	w.state(configMaps, engine.Active)
	settle := func(obj types.NamespacedName) {
		w.expect(obj)
		if xr, _ := c.Begin(obj); xr == nil {
			t.Fatalf("there is no XR %s", obj)
		}
		c.Settle(obj)
	}
	old := w.create(configMaps, ns, "old", nil)
	settle(types.NamespacedName{Namespace: ns, Name: "old"})
	_, before := c.Known()

	o.begin()
	w.state(configMaps, engine.Failed)
	must(t, w.client.Delete(t.Context(), old))
	w.create(configMaps, ns, "new", nil)
	o.end()
	w.state(configMaps, engine.Active)
	w.expect(types.NamespacedName{Namespace: ns, Name: "new"})
	if _, settled := c.Known(); settled != before-1 {
		t.Errorf("%d XRs are settled, want %d: one is gone and one is new", settled, before-1)
	}
}
