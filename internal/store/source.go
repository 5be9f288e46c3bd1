// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

const (
	verbList  = "list"
	verbWatch = "watch"
)

// A RequestError is the failure of a list or watch. It wraps what the API
// server answered.
type RequestError struct {
	Verb string // list or watch
	Err  error
}

func (e *RequestError) Error() string { return fmt.Sprintf("cannot %s: %v", e.Verb, e.Err) }
func (e *RequestError) Unwrap() error { return e.Err }

// Backoff returns how requests that failed are tried again: quickly at first,
// since a CRD is announced a moment before it is served, and then seldom, since
// each try may be refused again.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Cap: 10 * time.Second, Steps: 1 << 16}
}

// source sends an informer's requests, which end as soon as it is stopped.
type source struct {
	*requests

	kind Kind

	once     sync.Once
	watching chan struct{} // closed once, when the first watch is open
}

func newSource(client dynamic.Interface, kind Kind, t Timing, failed func(error)) *source {
	resource := client.Resource(kind.Resource)
	return &source{
		requests: &requests{
			timing: t.OrDefaults(), failed: failed, watch: resource.Watch,
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
		},
		kind: kind, watching: make(chan struct{}),
	}
}

// listerWatcher is the source as a reflector wants it.
func (s *source) listerWatcher(client dynamic.Interface) cache.ListerWatcher {
	lw := &cache.ListWatch{ListWithContextFunc: s.List, WatchFuncWithContext: s.Watch}
	if !s.kind.Watchable {
		lw.WatchFuncWithContext = s.poll
	}
	return cache.ToListWatcherWithWatchListSemantics(lw, client)
}

// Watch implements a reflector's watch.
func (s *source) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := s.requests.Watch(ctx, o)
	if err == nil {
		s.once.Do(func() { close(s.watching) })
	}
	return w, err
}

// poll stands in for a watch where there is none: nothing happens until it is
// time to list again.
func (s *source) poll(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewMethodNotSupported(s.kind.Resource.GroupResource(), "watch")
	}
	s.once.Do(func() { close(s.watching) })
	events := make(chan watch.Event, 1)
	expired := apierrors.NewResourceExpired("the objects are to be listed again").Status()
	over := time.AfterFunc(s.timing.Poll, func() { events <- watch.Event{Type: watch.Error, Object: &expired} })
	return &pause{events: events, over: over}, nil
}

// pause is a watch of which nothing comes but its end.
type pause struct {
	events chan watch.Event
	over   *time.Timer
}

func (p *pause) ResultChan() <-chan watch.Event { return p.events }
func (p *pause) Stop()                          { p.over.Stop() }
