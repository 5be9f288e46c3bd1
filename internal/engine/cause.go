// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Cause is the first event since an XR's last run that asked for another.
type Cause struct {
	// Kind and Object are what changed, which may be the XR itself.
	Kind   schema.GroupVersionKind
	Object types.NamespacedName

	at time.Time
}

func causeOf(kind schema.GroupVersionKind, obj *unstructured.Unstructured) Cause {
	return Cause{Kind: kind, Object: nameOf(obj), at: time.Now()}
}

// String names the object as people write it: kind, and namespace/name.
func (c Cause) String() string {
	name := c.Object.Name
	if c.Object.Namespace != "" {
		name = c.Object.String()
	}
	return fmt.Sprintf("%s %s", c.Kind.Kind, name)
}

// Wake enqueues the XRs because an object changed whose kind the operator watches
// by itself, such as a Composition.
func (c *Controller) Wake(kind schema.GroupVersionKind, object types.NamespacedName, xrs ...types.NamespacedName) {
	c.wake(Cause{Kind: kind, Object: object, at: time.Now()}, xrs...)
}

// wake enqueues the XRs because of an event. What an XR waits for already stays
// its cause: the time until it runs counts from there.
func (c *Controller) wake(cause Cause, xrs ...types.NamespacedName) {
	c.mu.Lock()
	for _, xr := range xrs {
		if _, waits := c.causes[xr]; !waits {
			c.causes[xr] = cause
		}
	}
	c.mu.Unlock()
	c.metrics.enqueued.Add(float64(len(xrs)))
	c.Enqueue(xrs...)
}

// Cause takes, at the start of a run, what that run is for. There is none if no
// event asked for it: the operator or the controller started, a watch became
// Active, a failed run is tried again, or a time has come.
func (c *Controller) Cause(xr types.NamespacedName) (Cause, bool) {
	c.mu.Lock()
	cause, ok := c.causes[xr]
	delete(c.causes, xr)
	c.mu.Unlock()
	if ok {
		c.metrics.latency.Observe(time.Since(cause.at).Seconds())
	}
	return cause, ok
}
