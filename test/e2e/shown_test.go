// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shown is when XRs of the test's namespace showed a value in their status.
type shown struct {
	w *world

	mu      sync.Mutex
	waiting map[string]chan time.Time // by "name=value"; guarded by mu
}

func newShown(w *world) *shown {
	return &shown{w: w, waiting: map[string]chan time.Time{}}
}

// awaits returns where the time arrives at which the XR first shows the value.
func (s *shown) awaits(name, value string) <-chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := make(chan time.Time, 1)
	s.waiting[name+"="+value] = at
	return at
}

func (s *shown) see(xr *unstructured.Unstructured) {
	value, _, _ := unstructured.NestedString(xr.Object, "status", "value")
	key := xr.GetName() + "=" + value
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.waiting[key]; ok {
		at <- time.Now()
		delete(s.waiting, key)
	}
}

// follow sees all XRs of the kind until the test ends.
func (s *shown) follow(kind schema.GroupVersionKind) {
	s.w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	watch, err := s.w.admin.Watch(s.w.t.Context(), list, client.InNamespace(s.w.namespace))
	s.w.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if xr, ok := event.Object.(*unstructured.Unstructured); ok {
				s.see(xr)
			}
		}
	}()
	s.w.t.Cleanup(func() {
		watch.Stop()
		<-done
	})
}

// takes does something and returns how long the XR takes from then on to show the
// value, and how long doing it took.
func (s *shown) takes(name, value string, do func()) (effect, doing time.Duration) {
	s.w.t.Helper()
	at, began := s.awaits(name, value), time.Now()
	do()
	done := time.Now()
	select {
	case shown := <-at:
		return max(0, shown.Sub(done)), done.Sub(began)
	case <-time.After(patience):
		s.w.t.Fatalf("%s does not show %s", name, value)
		return 0, 0
	}
}

// percentile is the least that so many percent do not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)].Round(time.Millisecond / 10)
}
