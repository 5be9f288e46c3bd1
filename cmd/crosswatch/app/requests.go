// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const verbApply = "apply"

// apiRequests tells what the operator costs the API server, and for what.
var apiRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "crosswatch_api_requests_total",
	Help: "Requests to the API server, by verb, by what for (read, apply, status, event, lease, review, write), and by the answer.",
}, []string{"verb", "reason", "code"})

func init() {
	metrics.Registry.MustRegister(apiRequests)
}

var requestInfo = &request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// countingTransport counts each request that goes through; a watch when it begins.
type countingTransport struct{ next http.RoundTripper }

func countRequests(next http.RoundTripper) http.RoundTripper { return countingTransport{next} }

// RoundTrip implements http.RoundTripper.
func (c countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	code := "<error>" // no answer came
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	verb, reason := classify(r)
	apiRequests.WithLabelValues(verb, reason, code).Inc()
	return response, err
}

// WrappedRoundTripper lets the connections beneath be found and closed.
func (c countingTransport) WrappedRoundTripper() http.RoundTripper { return c.next }

// classify says what is asked of the API server, and what for.
func classify(r *http.Request) (verb, reason string) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil {
		return strings.ToLower(r.Method), "read" // of a path that is no resource's
	}
	verb = info.Verb
	if strings.HasPrefix(r.Header.Get("Content-Type"), string(types.ApplyPatchType)) {
		verb = verbApply
	}
	return verb, reasonOf(verb, info)
}

func reasonOf(verb string, info *request.RequestInfo) string {
	switch {
	case info.Resource == "leases":
		return "lease"
	case strings.HasSuffix(info.Resource, "reviews"):
		return "review"
	case verb == "get" || verb == "list" || verb == "watch":
		return "read"
	case info.Resource == "events":
		return "event"
	case info.Subresource == "status":
		return "status"
	case verb == verbApply:
		return "apply"
	}
	return "write"
}
