// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/crosswatch-io/crosswatch/test/faults"
)

// moment is how long nothing may happen before it counts as not happening.
const moment = 200 * time.Millisecond

func TestWithoutFaultsTheAPIServerHearsWhatTheClientSays(t *testing.T) {
	f := newFixture(t)
	w := f.watch()
	f.must(f.remove())
	f.server.send()
	f.sees(w, watch.Modified)

	var got []string
	for _, r := range f.server.asked() {
		got = append(got, strings.Join([]string{r.Method, r.URL.String(), r.Proto, r.Header.Get("Authorization")}, " "))
	}
	want := []string{
		"GET /api/v1/configmaps?resourceVersion=5&watch=true HTTP/2.0 Bearer " + token,
		"DELETE /api/v1/namespaces/default/configmaps/a HTTP/2.0 Bearer " + token,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAClientsCertificateIsRefused(t *testing.T) {
	_, err := faults.Start(&rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, seed)
	if err == nil || !strings.Contains(err.Error(), "with a token") {
		t.Errorf("a configuration with a client's certificate: error %v, want advice to use a token", err)
	}
}

func TestDownRefusesConnectionsAndBreaksOpenOnesUntilUp(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		w := f.watch()
		f.proxy.Down()
		f.proxy.Down()
		f.sees(w, "")
		if err := f.list(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("while the proxy is down, a list fails with %v, want a refused connection", err)
		}
		f.must(f.proxy.Up())
		f.must(f.proxy.Up())
		f.must(f.list())
	}
}

func TestAHangIsAnsweredNeitherNowNorWhenItIsHealed(t *testing.T) {
	f := newFixture(t)
	open := f.watch()
	hang := f.proxy.Inject(faults.Fault{Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), moment)
	defer cancel()
	if _, err := f.client.List(ctx, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a list ends with %v, want that the client loses patience", err)
	}
	failed := make(chan error)
	go func() { failed <- f.list() }()
	f.server.send()
	select {
	case err := <-failed:
		t.Errorf("a list ended with %v", err)
	case event := <-open.ResultChan():
		t.Errorf("the open watch sends %v", event)
	case <-time.After(moment):
	}

	hang.Heal()
	if err := <-failed; err == nil {
		t.Error("a list that hung was answered in the end")
	}
	f.sees(open, watch.Error)
	f.must(f.list())
	if hang.Hits() != 2 {
		t.Errorf("%d hits, want the two lists", hang.Hits())
	}
}

func TestADelayComesBeforeEachAnswer(t *testing.T) {
	f := newFixture(t)
	slow := f.proxy.Inject(faults.Fault{Delay: moment})
	start := time.Now()
	f.must(f.list())
	if took := time.Since(start); took < moment {
		t.Errorf("a list took %s, want at least %s", took, moment)
	}
	slow.Heal()
	if slow.Hits() != 1 {
		t.Errorf("%d hits, want one", slow.Hits())
	}
}

func TestAStatusIsAnsweredInTheAPIServersPlace(t *testing.T) {
	cases := map[int]func(error) bool{
		http.StatusTooManyRequests:     apierrors.IsTooManyRequests,
		http.StatusInternalServerError: apierrors.IsInternalError,
		http.StatusServiceUnavailable:  apierrors.IsServiceUnavailable,
		http.StatusGatewayTimeout:      apierrors.IsTimeout,
		http.StatusForbidden:           apierrors.IsForbidden,
		http.StatusConflict:            apierrors.IsConflict,
	}
	for code, is := range cases {
		t.Run(http.StatusText(code), func(t *testing.T) {
			f := newFixture(t)
			f.proxy.Inject(faults.Fault{Status: code})
			if err := f.remove(); !is(err) {
				t.Errorf("got %v, want an error that the client knows as %d", err, code)
			}
			if asked := f.server.asked(); len(asked) > 0 {
				t.Errorf("the API server was asked %v", asked)
			}
		})
	}
}

func TestRetryAfterIsWhatTheClientWaits(t *testing.T) {
	f := newFixture(t)
	f.proxy.Inject(faults.Fault{Status: http.StatusTooManyRequests, RetryAfter: 3 * time.Second, On: faults.Writes})
	client, err := rest.HTTPClientFor(f.proxy.Config())
	f.must(err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, f.proxy.Config().Host+"/api/v1/namespaces/default/configmaps/a", nil)
	f.must(err)
	answer, err := client.Do(request)
	f.must(err)
	_, err = io.Copy(io.Discard, answer.Body)
	f.must(errors.Join(err, answer.Body.Close()))
	if got := answer.Header.Get("Retry-After"); got != "3" {
		t.Errorf("Retry-After is %q, want 3", got)
	}
}

func TestAPredicateLimitsAFault(t *testing.T) {
	f := newFixture(t)
	f.proxy.Inject(faults.Fault{Status: http.StatusConflict, On: faults.All(faults.Writes, faults.Resource("", "configmaps"))})
	f.proxy.Inject(faults.Fault{Status: http.StatusForbidden, On: faults.Not(faults.Writes)})
	if err := f.remove(); !apierrors.IsConflict(err) {
		t.Errorf("a deletion fails with %v, want a conflict", err)
	}
	if err := f.list(); !apierrors.IsForbidden(err) {
		t.Errorf("a list fails with %v, want forbidden", err)
	}
}

func TestAShareOfTheRequestsIsTheSameForTheSameSeed(t *testing.T) {
	const requests = 40
	pattern := func() (failed []bool) {
		f := newFixture(t)
		f.proxy.Inject(faults.Fault{Status: http.StatusConflict, Share: 0.5})
		for range requests {
			failed = append(failed, f.remove() != nil)
		}
		return failed
	}
	first := pattern()
	hit := 0
	for _, failed := range first {
		if failed {
			hit++
		}
	}
	if hit < requests/4 || hit > requests*3/4 {
		t.Errorf("%d of %d requests failed, want about half", hit, requests)
	}
	if diff := cmp.Diff(first, pattern()); diff != "" {
		t.Errorf("requests that failed (-first +second):\n%s", diff)
	}
}

func TestALostAnswerIsToARequestThatWasServed(t *testing.T) {
	f := newFixture(t)
	f.proxy.Inject(faults.Fault{Lose: true})
	if err := f.remove(); err == nil {
		t.Error("the answer came through")
	}
	if asked := f.server.asked(); len(asked) == 0 {
		t.Error("the API server was not asked")
	}
}

func TestACutEndsOpenWatches(t *testing.T) {
	cases := map[string]struct {
		how  faults.How
		last watch.EventType // what the client library makes of it; empty: the end
	}{
		"Regularly": {how: faults.Regularly},
		"Abruptly":  {how: faults.Abruptly, last: watch.Error},
		"MidObject": {how: faults.MidObject, last: watch.Error},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			first, second := f.watch(), f.watch()
			if n := f.proxy.Cut(tc.how, faults.Resource("", "secrets")); n != 0 {
				t.Errorf("%d watches of Secrets were cut, want none", n)
			}
			if n := f.proxy.Cut(tc.how, faults.Resource("", "configmaps")); n != 2 {
				t.Errorf("%d watches were cut, want two", n)
			}
			f.sees(first, tc.last)
			f.sees(second, tc.last)
			f.watch()
		})
	}
}

// What the client sees of half an event, it must not take for a whole one, nor for
// the regular end of a watch.
func TestMidObjectSendsHalfAnEvent(t *testing.T) {
	f := newFixture(t)
	client, err := rest.HTTPClientFor(f.proxy.Config())
	f.must(err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.proxy.Config().Host+"/api/v1/configmaps?watch=true", nil)
	f.must(err)
	answer, err := client.Do(request)
	f.must(err)
	first := make([]byte, 1)
	_, err = answer.Body.Read(first)
	f.must(err)
	if n := f.proxy.Cut(faults.MidObject, nil); n != 1 {
		t.Fatalf("%d watches were cut, want one", n)
	}
	rest, err := io.ReadAll(answer.Body)
	if err == nil {
		t.Error("the watch ended regularly")
	}
	f.must(answer.Body.Close())
	if got := string(first) + string(rest); !strings.Contains(got, "}\n{") || strings.HasSuffix(got, "}") {
		t.Errorf("the watch sent %q, want an event and half of another", got)
	}
}

func TestGoneIsWhatWatchesAndPagesThatContinueAreTold(t *testing.T) {
	f := newFixture(t)
	open := f.watch()
	gone := f.proxy.Inject(faults.Fault{Status: http.StatusGone, On: faults.Continuing})
	f.must(f.list())
	_, err := f.client.List(t.Context(), metav1.ListOptions{Continue: "there"})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("a list that continues fails with %v, want expired", err)
	}
	w, err := f.client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"})
	f.must(err)
	defer w.Stop()
	event := <-w.ResultChan()
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("a watch sends %v, want that its version expired", event)
	}
	f.server.send()
	f.sees(open, watch.Modified)
	gone.Heal()
	f.watch()
}

func TestFaultsActInTheirOrder(t *testing.T) {
	f := newFixture(t)
	delay := f.proxy.Inject(faults.Fault{Delay: moment})
	status := f.proxy.Inject(faults.Fault{Status: http.StatusConflict})
	never := f.proxy.Inject(faults.Fault{Delay: time.Hour})
	start := time.Now()
	if err := f.remove(); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if took := time.Since(start); took < moment {
		t.Errorf("it took %s, want at least %s", took, moment)
	}
	if diff := cmp.Diff([]int{1, 1, 0}, []int{delay.Hits(), status.Hits(), never.Hits()}); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
}

func TestStopWaitsForWhatIsServed(t *testing.T) {
	f := newFixture(t)
	f.watch()
	hang := f.proxy.Inject(faults.Fault{Hang: true, On: faults.Not(faults.Watches)})
	failed := make(chan error)
	go func() { failed <- f.list() }()
	for hang.Hits() == 0 {
		<-time.After(time.Millisecond)
	}
	if n := f.proxy.Watching(faults.Watches); n != 1 {
		t.Errorf("%d watches are open, want one", n)
	}
	f.proxy.Down()
	if n := f.proxy.Watching(nil); n != 0 {
		t.Errorf("%d watches are open after the end", n)
	}
	if err := <-failed; err == nil {
		t.Error("what hung was answered")
	}
}
