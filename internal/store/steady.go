// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// A reflector takes each watch that breaks off for a sign that the API server is not
// well: it waits, longer each time and for up to a minute, says nothing of that, and
// lists everything anew. Meanwhile it sees no change. Connections break for other
// reasons, and one after the other. So a reflector never gets to see what may pass:
// here it is asked again, soon, by whoever sends its requests.

// keepAsking sends a request, again and again while the API server is away or has
// too much to do.
func keepAsking[T any](ctx context.Context, verb string, failed func(error), ask func() (T, error)) (T, error) {
	backoff := Backoff()
	for {
		answer, err := ask()
		if err == nil {
			return answer, nil
		}
		var none T
		err = &RequestError{Verb: verb, Err: err}
		switch {
		case ctx.Err() != nil:
			return none, ctx.Err() // nothing that a reflector would wait for
		case !isPassing(err):
			return none, err
		}
		failed(err)
		select {
		case <-ctx.Done():
			return none, ctx.Err()
		case <-time.After(backoff.Step()):
		}
	}
}

// isPassing says that the API server did not get to judge the request.
func isPassing(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// keepWatching is keepAsking for watches. One that breaks off, or sends nothing for
// the time of silence, ends as if it had been open for long enough: a reflector goes
// on at once from where it was.
func keepWatching(ctx context.Context, silence time.Duration, failed func(error), open func() (watch.Interface, error)) (watch.Interface, error) {
	w, err := keepAsking(ctx, verbWatch, failed, open)
	if err != nil {
		return nil, err
	}
	s := &steadyWatch{source: w, silence: silence, failed: failed, events: make(chan watch.Event), stopped: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s, nil
}

// brief is how long a watch lasts at least: a reflector has no patience with one that
// ends sooner without any event, and an API server that ends all of them at once must
// not be asked all the time.
const brief = time.Second

// steadyWatch passes the events of a watch on, but for an error that may pass.
type steadyWatch struct {
	source  watch.Interface
	silence time.Duration
	failed  func(error)
	events  chan watch.Event

	once    sync.Once
	stopped chan struct{} // closed by the first Stop
	done    chan struct{} // closed when nothing more is passed on
}

// ResultChan implements watch.Interface.
func (s *steadyWatch) ResultChan() <-chan watch.Event { return s.events }

// Stop implements watch.Interface. It waits for the goroutine of the watch.
func (s *steadyWatch) Stop() {
	s.once.Do(func() { close(s.stopped) })
	s.source.Stop()
	<-s.done
}

var errBrief = errors.New("the API server ended the watch as soon as it had begun")

func (s *steadyWatch) run() {
	defer close(s.done)
	defer close(s.events)
	least := time.NewTimer(brief)
	defer least.Stop()
	told, broken := s.pass()
	if told {
		return
	}
	select {
	case <-least.C:
		if broken != nil {
			s.failed(&RequestError{Verb: verbWatch, Err: broken})
		}
	case <-s.stopped:
	}
}

// pass passes events on until the watch ends, says whether there were any, and what
// broke it.
func (s *steadyWatch) pass() (told bool, broken error) {
	begun := time.Now()
	silent := time.NewTimer(s.silence)
	defer silent.Stop()
	for {
		select {
		case event, open := <-s.source.ResultChan():
			if !open {
				return told, endedAfter(time.Since(begun))
			}
			if err := passingError(event); err != nil {
				return told, err
			}
			select {
			case s.events <- event:
				told = true
			case <-s.stopped:
				return told, nil
			}
			silent.Reset(s.silence)
		case <-silent.C:
			// A connection may be open that nothing comes through any more. Another watch shows.
			return told, nil
		case <-s.stopped:
			return told, nil
		}
	}
}

func endedAfter(lasted time.Duration) error {
	if lasted < brief {
		return errBrief
	}
	return nil
}

// passingError is what an event tells of that may pass.
func passingError(event watch.Event) error {
	if event.Type != watch.Error {
		return nil
	}
	if err := apierrors.FromObject(event.Object); isPassing(err) {
		return err
	}
	return nil
}
