// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestClassify(t *testing.T) {
	const apply = "application/apply-patch+yaml"
	tests := map[string]struct {
		method, path, contentType string
		verb, reason              string
	}{
		"Get":         {method: "GET", path: "/api/v1/namespaces/a/configmaps/b", verb: "get", reason: "read"},
		"List":        {method: "GET", path: "/apis/example.org/v1/things", verb: "list", reason: "read"},
		"Watch":       {method: "GET", path: "/apis/example.org/v1/things?watch=true", verb: "watch", reason: "read"},
		"Discovery":   {method: "GET", path: "/apis/example.org/v1", verb: "get", reason: "read"},
		"Apply":       {method: "PATCH", path: "/apis/example.org/v1/things/a", contentType: apply, verb: "apply", reason: "apply"},
		"ApplyStatus": {method: "PATCH", path: "/apis/example.org/v1/things/a/status", contentType: apply, verb: "apply", reason: "status"},
		"MergePatch": {
			method: "PATCH", path: "/apis/example.org/v1/things/a", contentType: "application/merge-patch+json",
			verb: "patch", reason: "write",
		},
		"Delete": {method: "DELETE", path: "/apis/example.org/v1/things/a", verb: "delete", reason: "write"},
		"Event":  {method: "POST", path: "/apis/events.k8s.io/v1/namespaces/a/events", verb: "create", reason: "event"},
		"Lease": {
			method: "PUT", path: "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", verb: "update", reason: "lease",
		},
		"Review": {method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews", verb: "create", reason: "review"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tc.method, "https://api"+tc.path, nil)
			r.Header.Set("Content-Type", tc.contentType)
			verb, reason := classify(r)
			if verb != tc.verb || reason != tc.reason {
				t.Errorf("got %s for %s, want %s for %s", verb, reason, tc.verb, tc.reason)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCountRequests(t *testing.T) {
	var failure error
	transport := countRequests(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTeapot, Body: http.NoBody}, failure
	}))
	send := func() {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://api/apis/example.org/v1/things", nil)
		response, err := transport.RoundTrip(r)
		if !errors.Is(err, failure) {
			t.Errorf("got error %v, want %v", err, failure)
		}
		if err == nil {
			_ = response.Body.Close()
		}
	}
	send()
	failure = errors.New("unreachable")
	send()
	for _, code := range []string{"418", "<error>"} {
		if got := testutil.ToFloat64(apiRequests.WithLabelValues("list", "read", code)); got != 1 {
			t.Errorf("counted %v requests with code %s, want 1", got, code)
		}
	}
}
