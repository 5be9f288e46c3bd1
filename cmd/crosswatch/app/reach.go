// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// reach knows whether the API server answers, from the requests that are made anyway. An outage can't be told over the API: this
// is where readiness has it from.
type reach struct {
	tolerance time.Duration
	clock     clock.PassiveClock

	mu      sync.Mutex // guards all below
	waiting int        // requests that have no answer yet
	failed  bool       // a request got no answer since the last that did
	// since is from when on requests wait or failed, and none was answered; zero if there are none of these.
	since time.Time
}

func newReach(o Options) *reach { return &reach{tolerance: o.FailureTolerance, clock: o.Clock} }

// watch returns a transport that takes note of each request and its answer.
func (r *reach) watch(next http.RoundTripper) http.RoundTripper {
	return &reachTransport{reach: r, next: next}
}

// askPatience is how long a probe waits for the answer to a question of its own: less than a kubelet waits for the probe.
const askPatience = 500 * time.Millisecond

// checker returns the check of the probe. Before it fails, it asks the API server itself, by a request that comes through this
// transport: what got no answer may all have been about a kind that alone is in trouble. Its error says the same however long there
// is no answer.
func (r *reach) checker(ask func(context.Context)) healthz.Checker {
	return func(request *http.Request) error {
		if r.isDoubtful() {
			ctx, cancel := context.WithTimeout(request.Context(), askPatience)
			defer cancel()
			ask(ctx)
		}
		if r.isDoubtful() {
			return fmt.Errorf("the API server has answered no request for more than %s: see whether it runs and can be reached from here", r.tolerance)
		}
		return nil
	}
}

func (r *reach) isDoubtful() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.since.IsZero() && r.clock.Since(r.since) > r.tolerance
}

func (r *reach) asked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	if r.since.IsZero() {
		r.since = r.clock.Now()
	}
}

// outcome is what came of a request.
type outcome int

const (
	answered outcome = iota
	unanswered
	abandoned // by us, so that it says nothing
)

func (r *reach) heard(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
	switch o {
	case answered:
		r.failed, r.since = false, r.clock.Now()
	case unanswered:
		r.failed = true
	case abandoned:
	}
	if r.waiting == 0 && !r.failed {
		r.since = time.Time{}
	}
}

type reachTransport struct {
	reach *reach
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It returns when a watch is open, not when that ends.
func (t *reachTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	t.reach.asked()
	response, err := t.next.RoundTrip(request)
	switch {
	case err == nil && isAnswer(response.StatusCode):
		t.reach.heard(answered)
	case errors.Is(request.Context().Err(), context.Canceled):
		t.reach.heard(abandoned)
	default:
		t.reach.heard(unanswered)
	}
	return response, err
}

// WrappedRoundTripper lets the connections beneath be found and closed.
func (t *reachTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isAnswer tells an API server that does its work, be it by a refusal, from one that can't.
func isAnswer(code int) bool {
	return code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}
