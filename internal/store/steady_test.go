// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
