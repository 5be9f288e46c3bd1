// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// fault answers, in the API server's place, the requests of which the path ends
// in one of its suffixes, for as long as it lasts.
type fault struct {
	suffixes []string
	answer   http.RoundTripper
	next     http.RoundTripper

	over atomic.Bool
	left atomic.Int64 // requests to answer before it is over; negative: any number
}

func newFault(answer http.RoundTripper, suffixes ...string) *fault {
	f := &fault{suffixes: suffixes, answer: answer}
	f.left.Store(-1)
	return f
}

func (f *fault) wrap(next http.RoundTripper) http.RoundTripper {
	f.next = next
	return f
}

func (f *fault) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, suffix := range f.suffixes {
		if strings.HasSuffix(r.URL.Path, suffix) && !f.over.Load() && f.left.Add(-1) != -1 {
			return f.answer.RoundTrip(r)
		}
	}
	return f.next.RoundTrip(r)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hang answers nothing, as long as it is waited for.
var hang = roundTripper(func(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
})

// refuse lets no connection come about.
var refuse = roundTripper(func(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
})

// status answers like an API server that has nothing but that code to say.
type status int

func (s status) RoundTrip(r *http.Request) (*http.Response, error) {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not now","code":%d}`, s)
	return &http.Response{
		StatusCode: int(s), Request: r, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

// impatient makes requests that hang be given up within a test.
func impatient(c *engine.Config) { c.Timing = store.Timing{Answer: 300 * time.Millisecond} }

// leases are of an API group that no fault here is about.
var leases = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

func TestAStartThatNeverSyncsHoldsNoRunAndIsTriedAgainWhileOtherKindsGoOn(t *testing.T) {
	const list, discovery = "/configmaps", "/api/v1"
	cases := map[string]struct {
		answer http.RoundTripper
		of     string
		says   string
	}{
		"list hangs":                    {answer: hang, of: list},
		"list is too much":              {answer: status(http.StatusTooManyRequests), of: list, says: "not now"},
		"list fails":                    {answer: status(http.StatusInternalServerError), of: list, says: "not now"},
		"discovery hangs":               {answer: hang, of: discovery},
		"discovery is too much":         {answer: status(http.StatusTooManyRequests), of: discovery, says: "not now"},
		"discovery fails":               {answer: status(http.StatusInternalServerError), of: discovery, says: "not now"},
		"no connection can be made":     {answer: refuse, of: list},
		"nor can one to discover kinds": {answer: refuse, of: discovery},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFault(tc.answer, tc.of)
			w := newWorld(t, through(f.wrap), impatient)
			ns := w.namespace()
			c := w.start("xrs", leases)

			begin := time.Now()
			_, err := c.Require(t.Context(), someXR, requires(named(configMaps, ns, "a")))
			if took := time.Since(begin); took > 1500*time.Millisecond {
				t.Errorf("the run was held for %s", took)
			}
			var watchErr *engine.WatchError
			if !errors.As(err, &watchErr) || watchErr.State != engine.Starting && watchErr.State != engine.Failed {
				t.Fatalf("got %v, want a WatchError that says Starting or Failed", err)
			}
			w.state(configMaps, engine.Failed)
			for _, words := range []string{tc.says, "it is tried again until it does"} {
				if message := w.engine.Watch(configMaps).Message; !strings.Contains(message, words) {
					t.Errorf("the message lacks %q: %s", words, message)
				}
			}
			w.create(leases, ns, "other", nil)
			w.expect(types.NamespacedName{Namespace: ns, Name: "other"})
			w.ranBefore(c, marker)

			f.over.Store(true)
			w.state(configMaps, engine.Active)
			w.expect(someXR)
		})
	}
}

func TestAKindWhoseConversionWebhookIsDownIsFailedAndSaysSoUntilItIsBack(t *testing.T) {
	w := newWorld(t, admin)
	c := w.start("xrs", leases)
	crd := w.install("Converted", apiextensionsv1.ClusterScoped, "v1", "v2")
	v1, v2 := kindOf(crd, "v1"), kindOf(crd, "v2")
	w.createSoon(v1, "", "a")
	w.change(crd, func() {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/convert")},
			},
		}
	})

	_, _ = c.Require(t.Context(), someXR, requires(named(v2, "", "a")))
	w.state(v2, engine.Failed)
	if message := w.engine.Watch(v2).Message; !strings.Contains(message, "conversion webhook") {
		t.Errorf("the message does not say what is down: %s", message)
	}
	w.ranBefore(c, marker)
	w.change(crd, func() { crd.Spec.Conversion = nil })
	w.state(v2, engine.Active)
	w.expect(someXR)
}

// Case A2: a start that fails once is tried again, without anybody asking.
func TestA2AWatchWhoseFirstStartFailsIsActiveSoonAfterwards(t *testing.T) {
	for _, suffix := range []string{"/api/v1", "/configmaps"} {
		t.Run(suffix, func(t *testing.T) {
			f := newFault(status(http.StatusServiceUnavailable), suffix)
			f.left.Store(3)
			w := newWorld(t, through(f.wrap))
			ns := w.namespace()
			w.start("xrs", configMaps)
			if state := w.engine.Watch(configMaps).State; state == engine.Active {
				t.Error("the watch says that it is Active before it is")
			}
			w.state(configMaps, engine.Active)
			w.create(configMaps, ns, "xr", nil)
			w.expect(types.NamespacedName{Namespace: ns, Name: "xr"})
		})
	}
}

// Case A4: to stop a watch, or the controller of XRs, takes no informer that has
// synced, nor an API server that answers.
func TestA4StoppingNeedsNoWatchThatHasSynced(t *testing.T) {
	answers := map[string]http.RoundTripper{
		"nothing is answered":     hang,
		"there is too much to do": status(http.StatusTooManyRequests),
		"no connection is made":   refuse,
	}
	for name, answer := range answers {
		for _, when := range []string{"before the first list", "later"} {
			t.Run(name+" "+when, func(t *testing.T) {
				o := &outage{resource: "configmaps", answer: answer}
				w := newWorld(t, through(func(next http.RoundTripper) http.RoundTripper {
					o.next = next
					return o
				}))
				c := w.start("xrs", leases)
				w.state(leases, engine.Active)
				if when == "later" {
					_, err := c.Require(t.Context(), someXR, requires(named(configMaps, "default", "a")))
					must(t, err)
				}
				o.begin()
				if _, err := c.Require(t.Context(), otherXR, requires(named(configMaps, "default", "a"))); when != "later" && err == nil {
					t.Fatal("there is something to read although nothing was listed")
				}
				o.awaitRequest(t)

				begin := time.Now()
				w.engine.Remove("xrs")
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("the stop took %s", took)
				}
				if got := w.engine.Watches(); len(got) != 0 {
					t.Errorf("there are watches in service: %v", got)
				}
			})
		}
	}
}
