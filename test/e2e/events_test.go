// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// events returns the events about objects in the test's namespace. None of them
// may have been sent again: a repeated one has a series.
func (w *world) events() []eventsv1.Event {
	w.t.Helper()
	list := &eventsv1.EventList{}
	w.must(w.admin.List(w.t.Context(), list, client.InNamespace(w.namespace)))
	for _, e := range list.Items {
		if e.Series != nil {
			w.t.Errorf("an event was sent again: %s %s: %s", e.Regarding.Name, e.Reason, e.Note)
		}
	}
	return list.Items
}

// told returns the events of an XR, as "type reason: note", sorted.
func (w *world) told(xr *unstructured.Unstructured) []string {
	w.t.Helper()
	var told []string
	for _, e := range w.events() {
		if e.Regarding.UID == xr.GetUID() {
			told = append(told, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
		}
	}
	slices.Sort(told)
	return told
}

func (w *world) tells(xr *unstructured.Unstructured, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	w.eventually("the events of "+xr.GetName(), func() (bool, string) {
		got := w.told(xr)
		return slices.Equal(got, want), strings.Join(got, "\n")
	})
}

func TestEventsTellTransitionsAndNotStates(t *testing.T) {
	w, kind, server := composing(t, "picky", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp, err := reader(req)
		if found, _ := respond.Required(req, "settings"); value(found) == "odd" {
			respond.Warning(rsp, "odd settings")
		}
		return rsp, err
	})
	cm := w.configMap("settings", nil, map[string]string{"value": "good"})
	w.create(cm)
	xr := w.xr(kind, "xr", map[string]any{"settings": "settings"})
	w.ready(xr)
	w.settled(server.TotalCalls)
	w.settled(func() int { return len(w.told(xr)) })
	first := w.told(xr) // it may have failed at first, for want of a checked revision

	set := func(value string) { update(w, cm, func(c *configMap) { c.Data["value"] = value }) }
	woken := "Normal Woken: Reconciled because of ConfigMap " + w.namespace + "/settings"
	set("odd")
	want := slices.Concat(first, []string{woken, `Warning ComposeResources: Pipeline step "picky": odd settings`})
	w.tells(xr, want...)

	// A change that the function sees and that changes nothing.
	calls := server.TotalCalls()
	update(w, cm, func(c *configMap) { c.Labels = map[string]string{"seen": "yes"} })
	w.eventually("another call", func() (bool, string) { n := server.TotalCalls(); return n > calls, strconv.Itoa(n) })
	w.settled(server.TotalCalls)
	w.tells(xr, want...)
}
