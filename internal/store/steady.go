// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A reflector takes each watch that breaks off for a sign that the API server is not
// well: it waits, longer each time and for up to a minute, says nothing of that, and
// lists everything anew. Meanwhile it sees no change. Connections break for other
// reasons, and one after the other. So most of what may pass is dealt with here.

// requests sends the lists and watches of one reflector. None of them lasts for ever,
// however the API server behaves, and all end when their context does.
type requests struct {
	timing Timing // without zeros
	failed func(error)
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)

	vain atomic.Int32 // watches in a row that ended at once and told nothing
}

// List implements a reflector's list.
func (r *requests) List(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return keepAsking(ctx, verbList, r.failed, func() (runtime.Object, error) {
		ctx, cancel := context.WithTimeout(ctx, r.timing.List)
		defer cancel()
		return r.list(ctx, o)
	})
}

// Watch implements a reflector's watch. One that breaks off, or sends nothing for the
// time of silence, ends as if it had been open for long enough: a reflector goes on at
// once from where it was.
func (r *requests) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := keepAsking(ctx, verbWatch, r.failed, func() (watch.Interface, error) { return r.open(ctx, o) })
	if err != nil {
		return nil, err
	}
	s := &steadyWatch{
		source: w, requests: r, listing: o.SendInitialEvents != nil && *o.SendInitialEvents,
		events: make(chan watch.Event), stopped: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s, nil
}

// open opens one watch. It ends after a time of its own, since permissions are
// looked at only when a watch begins; and here, if the API server forgets to.
func (r *requests) open(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	lasts := r.timing.Watch/2 + rand.N(r.timing.Watch/2+1) //nolint:gosec // spreads what need not come at once
	seconds := max(1, int64(lasts.Seconds()))
	o.TimeoutSeconds = &seconds

	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(r.timing.Answer, cancel)
	w, err := r.watch(ctx, o)
	if err != nil {
		late.Stop()
		cancel()
		return nil, err
	}
	late.Reset(time.Duration(seconds)*time.Second + r.timing.Answer)
	return &bounded{Interface: w, late: late, cancel: cancel}, nil
}

// bounded is a watch whose request is given up when it is late.
type bounded struct {
	watch.Interface

	late   *time.Timer
	cancel context.CancelFunc
}

func (b *bounded) Stop() {
	b.late.Stop()
	b.cancel()
	b.Interface.Stop()
}

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

// isPassing says that the API server did not get to judge the request. That it has not
// come as far as a version, which it may never do, is for the reflector to deal with.
func isPassing(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return false
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

const (
	// brief is how long a watch lasts at least that tells nothing: a reflector has no
	// patience with one that ends sooner, and an API server that ends all of them at
	// once must not be asked all the time.
	brief = time.Second
	// vainly is how many watches in a row may tell nothing before the reflector sees
	// how one ended: there may be an event that nobody can read, and to list all
	// objects anew goes past it.
	vainly = 6
)

// steadyWatch passes the events of a watch on, but for an error that may pass.
type steadyWatch struct {
	source   watch.Interface
	requests *requests
	// listing says that the objects that there are have not all been sent yet. How that
	// ends is for the reflector to know: it lists them in another way. Only run uses it.
	listing bool
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

var (
	errBrief = errors.New("the API server ended the watch as soon as it had begun")
	errCut   = errors.New("the API server ended the watch before it had sent all objects")
)

func (s *steadyWatch) run() {
	defer close(s.done)
	defer close(s.events)
	least := time.NewTimer(brief)
	defer least.Stop()
	told, broken := s.pass()
	if told || broken == nil {
		s.requests.vain.Store(0)
		return
	}
	select {
	case <-least.C:
		s.requests.failed(&RequestError{Verb: verbWatch, Err: broken})
	case <-s.stopped:
		return
	}
	if status, ok := broken.(apierrors.APIStatus); ok && s.requests.vain.Add(1)%vainly == 0 {
		answer := status.Status()
		s.send(watch.Event{Type: watch.Error, Object: &answer})
	}
}

// pass passes events on until the watch ends, says whether they told of anything, and
// what broke it.
func (s *steadyWatch) pass() (told bool, broken error) {
	begun := time.Now()
	silent := time.NewTimer(s.requests.timing.Silence)
	defer silent.Stop()
	for {
		select {
		case event, open := <-s.source.ResultChan():
			if !open {
				return told && !s.listing, s.endedAfter(time.Since(begun))
			}
			if err := passingError(event); err != nil && !s.listing {
				return told, err
			}
			if !s.send(event) {
				return told, nil
			}
			told = told || event.Type != watch.Bookmark
			s.listing = s.listing && !isEndOfList(event)
			silent.Reset(s.requests.timing.Silence)
		case <-silent.C:
			// A connection may be open that nothing comes through any more. Another watch shows.
			return told, nil
		case <-s.stopped:
			return told, nil
		}
	}
}

// send passes an event on, and returns false if nobody waits for it any more.
func (s *steadyWatch) send(event watch.Event) bool {
	select {
	case s.events <- event:
		return true
	case <-s.stopped:
		return false
	}
}

func (s *steadyWatch) endedAfter(lasted time.Duration) error {
	switch {
	case s.listing:
		return errCut
	case lasted < brief:
		return errBrief
	}
	return nil
}

// isEndOfList says that all objects were sent.
func isEndOfList(event watch.Event) bool {
	if event.Type != watch.Bookmark {
		return false
	}
	object, err := meta.Accessor(event.Object)
	return err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
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
