// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crosswatch-io/crosswatch/internal/store"
)

const (
	emptyList = `{"apiVersion":"example.org/v1","kind":"WidgetList","metadata":{"resourceVersion":"1"},"items":[]}`
	change    = `{"type":"ADDED","object":{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"2"}}}`
)

// breaking is an API server of an empty list, whose watches each send the same and
// then break, until there were that many of them.
type breaking struct {
	sends   string
	ends    error
	watches int
	opened  chan struct{} // of which one comes for each watch that lasts
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") != "":
		recorder.WriteHeader(http.StatusBadRequest)
	case query.Get("watch") == "":
		_, _ = recorder.WriteString(emptyList)
	}
	response := recorder.Result()
	response.Request = r
	if query.Get("watch") != "" && query.Get("sendInitialEvents") == "" {
		b.watches--
		response.Body = io.NopCloser(io.MultiReader(strings.NewReader(b.sends), end{b.ends}))
		if b.watches < 0 {
			select {
			case b.opened <- struct{}{}:
			default:
			}
			response.Body = open{r}
		}
	}
	return response, nil
}

// end reads as an error.
type end struct{ error }

func (e end) Read([]byte) (int, error) { return 0, e.error }

// open reads as nothing, until the request is given up.
type open struct{ *http.Request }

func (o open) Read([]byte) (int, error) {
	<-o.Context().Done()
	return 0, o.Context().Err()
}

func (open) Close() error { return nil }

// A reflector alone would wait longer each time, for half a minute in the end.
func TestAWatchIsOpenAgainSoonHoweverOftenItBroke(t *testing.T) {
	t.Parallel()
	reset := errors.New("the stream was reset")
	for name, tc := range map[string]struct {
		sends string
		ends  error
		each  time.Duration // that a break may take
	}{
		"it ends as soon as it began":    {ends: io.EOF, each: time.Second},
		"it breaks as soon as it began":  {ends: reset, each: time.Second},
		"it ends after an event":         {sends: change, ends: io.EOF},
		"it breaks after an event":       {sends: change, ends: reset},
		"it breaks in the midst of one":  {sends: change + change[:40], ends: io.ErrUnexpectedEOF},
		"there is too much to do for it": {sends: `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":429}}`, ends: io.EOF, each: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const breaks = 4
			server := &breaking{sends: tc.sends, ends: tc.ends, watches: breaks, opened: make(chan struct{}, 1)}
			begun := time.Now()
			informer, err := store.Start(t.Context(), clientOf(t, server), widgets, listener{}, store.Timing{})
			if err != nil {
				t.Fatal(err)
			}
			defer informer.Stop()
			select {
			case <-server.opened:
			case <-time.After(time.Minute):
				t.Fatal("it was never open again")
			}
			if took, most := time.Since(begun), breaks*tc.each+3*time.Second; took > most {
				t.Errorf("it took %s, want %s at most", took, most)
			}
			if tc.sends == change && informer.Get("", "a") == nil {
				t.Error("the event was not heard of")
			}
		})
	}
}

// What is between here and the API server may go on to hold a connection that nothing
// comes through any more.
func TestAWatchThatSendsNothingIsReplaced(t *testing.T) {
	t.Parallel()
	server := &breaking{opened: make(chan struct{}, 1)}
	h := listener{make(chan struct{}, 1)}
	informer, err := store.Start(t.Context(), clientOf(t, server), widgets, h, store.Timing{Silence: 1100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer informer.Stop()
	for range 2 {
		select {
		case <-server.opened:
		case <-h.failed:
			t.Error("to be silent is called a failure")
		case <-time.After(10 * time.Second):
			t.Fatal("no watch is open")
		}
	}
}

// An API server that ends all watches at once is no better than one that opens none.
func TestAWatchThatEndsAsSoonAsItBeginsIsAFailure(t *testing.T) {
	t.Parallel()
	h := listener{make(chan struct{})}
	server := &breaking{ends: io.EOF, watches: 100, opened: make(chan struct{}, 1)}
	informer, err := store.Start(t.Context(), clientOf(t, server), widgets, h, store.Timing{})
	if err != nil {
		t.Fatal(err)
	}
	defer informer.Stop()
	select {
	case <-h.failed:
	case <-time.After(10 * time.Second):
		t.Error("nobody is told")
	}
	if informer.List("", nil) != nil {
		t.Error("there are objects")
	}
}

const (
	bookmark = `{"type":"BOOKMARK","object":{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"resourceVersion":"1"}}}`
	broken   = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}}`
	kindless = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"2"}}}`
	expired  = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`
	tooLarge = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,
		"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`
)

// scripted is an API server that answers lists, watches, and watches that are to send
// all objects first, each as it was told; with no status, nothing comes for as long as
// the client waits.
type scripted struct {
	list, watch, stream func(version string) (status int, body string)

	lists, watches atomic.Int32
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	answer := s.list
	switch {
	case query.Get("sendInitialEvents") != "":
		answer = s.stream
	case query.Get("watch") != "":
		s.watches.Add(1)
		answer = s.watch
	default:
		s.lists.Add(1)
	}
	status, body := answer(query.Get("resourceVersion"))
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(max(status, http.StatusOK))
	_, _ = recorder.WriteString(body)
	response := recorder.Result()
	response.Request = r
	if status == 0 {
		response.Body = open{r}
	}
	return response, nil
}

func always(status int, body string) func(string) (int, string) {
	return func(string) (int, string) { return status, body }
}

// start starts an informer of what the server has.
func start(t *testing.T, s *scripted) (*store.Informer, <-chan struct{}) {
	t.Helper()
	h := listener{make(chan struct{}, 1)}
	informer, err := store.Start(t.Context(), clientOf(t, s), widgets, h, store.Timing{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(informer.Stop)
	return informer, h.failed
}

func within(t *testing.T, what string, happens <-chan struct{}) {
	t.Helper()
	select {
	case <-happens:
	case <-time.After(20 * time.Second):
		t.Fatalf("gave up waiting for %s", what)
	}
}

func TestObjectsThatCannotBeStreamedAreListed(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{"an error ends the stream": change + broken, "the stream ends": change} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{list: always(http.StatusOK, emptyList), watch: always(0, ""), stream: always(http.StatusOK, sent)}
			informer, failed := start(t, s)
			if sent == change {
				within(t, "somebody to be told", failed) // and to give up: it may go on like that for ever
				return
			}
			within(t, "the objects to be listed", informer.Synced())
			if informer.List("", nil) != nil {
				t.Error("there are objects that the list does not have")
			}
		})
	}
}

// A bookmark tells of nothing, so that a watch which sends no more is as vain as one that
// sends nothing.
func TestAWatchThatBreaksAfterABookmarkIsAFailure(t *testing.T) {
	t.Parallel()
	s := &scripted{
		list: always(http.StatusOK, emptyList), watch: always(http.StatusOK, bookmark+broken), stream: always(http.StatusBadRequest, ""),
	}
	_, failed := start(t, s)
	within(t, "somebody to be told", failed)
	within(t, "somebody to be told again", failed)
	if n := s.watches.Load(); n > 3 {
		t.Errorf("there were %d watches in two seconds", n)
	}
}

func TestAnEventThatCannotBeReadIsPassedByWithAList(t *testing.T) {
	t.Parallel()
	relisted := make(chan struct{})
	s := &scripted{watch: always(http.StatusOK, kindless), stream: always(http.StatusBadRequest, "")}
	s.list = func(string) (int, string) {
		if s.lists.Load() == 2 {
			close(relisted)
		}
		return http.StatusOK, emptyList
	}
	start(t, s)
	within(t, "another list", relisted)
}

// Once etcd was restored, the API server may never come to the version that was seen last.
func TestAVersionThatTheAPIServerDoesNotComeToIsGivenUp(t *testing.T) {
	t.Parallel()
	const newer = `{"apiVersion":"example.org/v1","kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[]}`
	opened := make(chan struct{}, 1)
	s := &scripted{stream: always(http.StatusBadRequest, "")}
	s.list = func(version string) (int, string) {
		switch version {
		case "9":
			return http.StatusGatewayTimeout, tooLarge
		case "":
			return http.StatusOK, emptyList
		}
		return http.StatusOK, newer
	}
	s.watch = func(version string) (int, string) {
		if version == "9" {
			return http.StatusGone, expired
		}
		select {
		case opened <- struct{}{}:
		default:
		}
		return 0, ""
	}
	start(t, s)
	within(t, "a watch from an earlier version", opened)
}
