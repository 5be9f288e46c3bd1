// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"maps"
	"sync"
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

	// free says that this is nothing that an XR's own writes could have led to: its
	// creation or deletion, or what the operator itself made of a Composition or a
	// Function. No breaker has it wait, or charges for what it leads to.
	free bool
	// byUser says that this may be what a user did to the XR, or some tool for a user:
	// which of them can't be told. No breaker has it wait for long.
	byUser bool
}

func causeOf(kind schema.GroupVersionKind, obj *unstructured.Unstructured) *Cause {
	return &Cause{Kind: kind, Object: nameOf(obj), at: time.Now()}
}

// causeOnXR is that of an event on an XR itself.
func causeOnXR(kind schema.GroupVersionKind, old, current *unstructured.Unstructured) *Cause {
	cause := causeOf(kind, cmp.Or(current, old))
	switch {
	case old == nil || current == nil || old.GetUID() != current.GetUID():
		cause.free = true
	case current.GetDeletionTimestamp() != nil && old.GetDeletionTimestamp() == nil:
		cause.free = true
	default:
		cause.byUser = old.GetGeneration() != current.GetGeneration() ||
			!maps.Equal(old.GetAnnotations(), current.GetAnnotations())
	}
	return cause
}

// charges says that the XR is charged for what it writes because of this. What came
// of no event is no answer to anything.
func (c *Cause) charges() bool { return c != nil && !c.free }

// String names the object as people write it: kind, and namespace/name.
func (c *Cause) String() string {
	name := c.Object.Name
	if c.Object.Namespace != "" {
		name = c.Object.String()
	}
	return fmt.Sprintf("%s %s", c.Kind.Kind, name)
}

// Wake enqueues the XRs because an object changed whose kind the operator watches
// by itself, such as a Composition. An XR is not charged for what it writes then, and
// does not wait: a new revision may be what ends its loop.
func (c *Controller) Wake(kind schema.GroupVersionKind, object types.NamespacedName, xrs ...types.NamespacedName) {
	c.wake(&Cause{Kind: kind, Object: object, at: time.Now(), free: true}, xrs...)
}

// wake enqueues the XRs because of an event.
func (c *Controller) wake(cause *Cause, xrs ...types.NamespacedName) {
	c.causes.add(cause, xrs...)
	c.metrics.enqueued.Add(float64(len(xrs)))
	c.enqueueFor(cause, xrs)
}

// Cause takes, at the start of a run, what that run is for: nil if no event asked
// for it, but the start of the operator or the controller, a watch that became
// Active, an earlier failure, or the time.
func (c *Controller) Cause(xr types.NamespacedName) *Cause {
	cause := c.causes.take(xr)
	if cause != nil && !c.Circuit(xr).Open { // an XR that is slowed waits on purpose
		c.metrics.latency.Observe(time.Since(cause.at).Seconds())
	}
	return cause
}

// PutBack makes what a run was for that of the next one, since this one came to
// nothing.
func (c *Controller) PutBack(xr types.NamespacedName, cause *Cause) { c.causes.add(cause, xr) }

// manyCauses is how many are worth giving the memory back that their map took.
const manyCauses = 1024

// causes are those of the XRs that an event enqueued and that have not run since:
// the first of each, since the time that an XR waits counts from there. One that
// many XRs wait for is shared.
type causes struct {
	mu   sync.Mutex
	byXR map[types.NamespacedName]*Cause // guarded by mu
	most int                             // that byXR held since it was made; guarded by mu
}

func (c *causes) add(cause *Cause, xrs ...types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byXR == nil {
		c.byXR = map[types.NamespacedName]*Cause{}
	}
	for _, xr := range xrs {
		if c.byXR[xr] == nil {
			c.byXR[xr] = cause
		}
	}
	c.most = max(c.most, len(c.byXR))
}

func (c *causes) take(xr types.NamespacedName) *Cause {
	c.mu.Lock()
	defer c.mu.Unlock()
	cause := c.byXR[xr]
	delete(c.byXR, xr)
	if len(c.byXR) == 0 && c.most > manyCauses {
		// A map never gets smaller by itself.
		c.byXR, c.most = nil, 0
	}
	return cause
}
