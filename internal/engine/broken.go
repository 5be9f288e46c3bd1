// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

//go:build brokenordering

package engine

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crosswatch-io/crosswatch/internal/store"
)

// What is here breaks the order that the package relies on, on purpose, so that a
// test can show that it would notice.

// Peek returns what there is to read from of a kind, and records nothing.
func (c *Controller) Peek(gvk schema.GroupVersionKind) *store.Informer {
	c.engine.mu.Lock()
	defer c.engine.mu.Unlock()
	if w, ok := c.engine.watches[gvk]; ok && w.live {
		return w.informer
	}
	return nil
}

// SweepInTwoSteps decides what nobody needs, waits with the lock free, as for a
// request, and then stops it.
func (e *Engine) SweepInTwoSteps(wait func()) {
	e.mu.Lock()
	unneeded := e.unneededLocked()
	e.mu.Unlock()

	wait()

	e.mu.Lock()
	e.takeOutLocked(unneeded)
	e.mu.Unlock()
	for _, w := range unneeded {
		<-w.done
	}
}
