// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

func TestAnXRThatWasNotWokenIsFoundCountedAndWoken(t *testing.T) {
	w := newWorld(t, admin, func(c *engine.Config) { c.VerifyInterval = 20 * time.Millisecond })
	ns := w.namespace()
	c := w.startWith("verified", secrets, func(c *engine.Controller, xr types.NamespacedName) { c.Begin(xr) })
	cm := w.create(configMaps, ns, "a", nil)
	r := requires(named(configMaps, ns, "a"))
	stale := cm.DeepCopy()
	stale.Object["data"] = map[string]any{"value": "what is not there any more"}

	// see makes an XR whose last run saw something.
	see := func(name string, what *unstructured.Unstructured) types.NamespacedName {
		xr := types.NamespacedName{Namespace: ns, Name: name}
		w.create(secrets, ns, name, nil)
		w.expect(xr)
		w.ranBefore(c, marker)
		c.Begin(xr)
		_, err := c.Require(t.Context(), xr, r)
		must(t, err)
		c.Saw(xr, r.Reference, what)
		c.Track(xr, nil, []dependency.Requirement{r})
		return xr
	}
	informer, err := c.Require(t.Context(), someXR, r)
	must(t, err)
	right := see("right", informer.Get(ns, "a"))
	wrong := see("wrong", stale)
	w.expect(wrong)
	for _, ran := range w.ranBefore(c, marker) {
		if ran == right {
			t.Error("an XR was woken that had seen what there is")
		}
	}
	if got := seriesOf(t, "controller", c.Name())["crosswatch_missed_changes_total"]; got != 1 {
		t.Errorf("%v XRs were found not to be woken, want 1", got)
	}
}
