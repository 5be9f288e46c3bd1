// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/store"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// seer tells the sights when the XRs run.
type seer struct {
	reconcile.Reconciler

	sights *sights
}

func (s seer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s.sights.begin(req.NamespacedName)
	defer s.sights.end(req.NamespacedName)
	return s.Reconciler.Reconcile(ctx, req)
}

// Saw tells what a reference meant when the XR's run read it, for a later check;
// it costs nothing if there are none.
func (c *Controller) Saw(xr types.NamespacedName, r dependency.Reference, objects ...*unstructured.Unstructured) {
	if c.sights != nil {
		c.sights.saw(xr, seen{r, slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o == nil })})
	}
}

// verify checks, at every interval until ctx ends, that each XR saw what there is.
func (e *Engine) verify(ctx context.Context) {
	ticker := time.NewTicker(e.verifyInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for _, c := range e.Controllers() {
				c.verify()
			}
		case <-ctx.Done():
			return
		}
	}
}

// verify reports each XR that what it depends on differs for from what it saw, and
// that nothing asked to run since; and asks it.
func (c *Controller) verify() {
	for name, all := range c.sights.resting() {
		found := c.suspect(name, all)
		if !c.sights.judge(name, found) {
			continue
		}
		c.metrics.missed.Inc()
		c.log.Error(nil, "An XR was not woken for a change. It is now; please report this.", "xr", name.String(), "changed", found.kind.String())
		c.Enqueue(name)
	}
}

// suspect compares what an XR saw with what there is.
func (c *Controller) suspect(name types.NamespacedName, all []seen) *suspicion {
	if own := c.engine.lookout(c.kind); own.informer != nil && !c.isKnown(name, own.informer.Get(name.Namespace, name.Name)) {
		return own.suspicion()
	}
	for _, s := range all {
		there := c.engine.lookout(s.reference.GVK)
		if !there.inService || there.informer != nil && !sameObjects(s.objects, current(there.informer, s.reference)) {
			return there.suspicion()
		}
	}
	return nil
}

// isKnown says that an XR, nil if it is gone, is as its last run found it.
func (c *Controller) isKnown(name types.NamespacedName, obj *unstructured.Unstructured) bool {
	c.mu.Lock()
	r, ok := c.runs[name]
	if !ok || obj == nil {
		c.mu.Unlock()
		return !ok && obj == nil
	}
	uid, view := r.uid, r.view
	c.mu.Unlock()
	return uid == obj.GetUID() && view == xr.WakeHash(obj)
}

// lookout is what there is to read from of a kind.
type lookout struct {
	kind      schema.GroupVersionKind
	inService bool
	informer  *store.Informer // nil unless it may be read
	handled   string
}

func (e *Engine) lookout(gvk schema.GroupVersionKind) lookout {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := lookout{kind: gvk}
	w, ok := e.watches[gvk]
	if !ok {
		return out
	}
	out.inService, out.handled = true, w.lastHandled()
	if w.live {
		out.informer = w.informer
	}
	return out
}

func (l lookout) suspicion() *suspicion {
	s := &suspicion{kind: l.kind, handled: l.handled}
	if l.informer != nil {
		s.version = l.informer.Version()
	}
	return s
}

func current(informer *store.Informer, r dependency.Reference) []*unstructured.Unstructured {
	if r.Name == "" {
		return informer.List(r.Namespace, r.Labels)
	}
	if obj := informer.Get(r.Namespace, r.Name); obj != nil {
		return []*unstructured.Unstructured{obj}
	}
	return nil
}

// sameObjects compares as events do: a new resource version alone is no change.
func sameObjects(a, b []*unstructured.Unstructured) bool {
	return slices.EqualFunc(a, b, func(x, y *unstructured.Unstructured) bool { return x == y || !differ(x, y) })
}
