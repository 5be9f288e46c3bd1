// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// refused are the XRs of which the API server refused a request since they were
// last taken.
type refused struct {
	mu  sync.Mutex
	xrs sets.Set[types.NamespacedName] // guarded by mu
}

// Refused notes that the XR's run was not allowed something. It is tried again
// as soon as the operator's rules change.
func (c *Controller) Refused(xr types.NamespacedName) {
	c.refused.mu.Lock()
	defer c.refused.mu.Unlock()
	if c.refused.xrs == nil {
		c.refused.xrs = sets.New[types.NamespacedName]()
	}
	c.refused.xrs.Insert(xr)
}

func (r *refused) drop(xr types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.xrs.Delete(xr)
}

func (r *refused) take() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	xrs := r.xrs.UnsortedList()
	r.xrs = nil
	return xrs
}

// retryRefused enqueues the XRs that were refused something. Should the API
// server know of the new rules a moment later, they are tried again soon.
func (c *Controller) retryRefused() {
	xrs := c.refused.take()
	if len(xrs) == 0 {
		return
	}
	<-c.queueReady // a run of this controller came before
	for _, xr := range xrs {
		c.queue.Forget(reconcile.Request{NamespacedName: xr})
	}
	c.Enqueue(xrs...)
}
