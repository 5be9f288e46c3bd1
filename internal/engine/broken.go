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
	var unneeded []*watch
	for gvk, w := range e.watches {
		needed := w.keepLocked(func(c *Controller) bool {
			return e.runsLocked(c) && (c.kind == gvk || c.tracker.HasKind(gvk))
		})
		if needed == 0 {
			unneeded = append(unneeded, w)
		}
	}
	e.mu.Unlock()

	wait()

	e.mu.Lock()
	for _, w := range unneeded {
		delete(e.watches, w.gvk)
		w.live = false
		w.setLocked(Stopping, "")
		w.cancel()
	}
	e.mu.Unlock()
	for _, w := range unneeded {
		<-w.done
	}
}
