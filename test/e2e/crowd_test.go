// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crowd is all the XRs of a kind in the test's namespace. One request is about
// many of them where it can be: what an API server takes to answer would
// otherwise be most of a test's time.
type crowd struct {
	w    *world
	kind schema.GroupVersionKind
	name string
	many int
}

// crowd creates XRs with names like "name-0".
func (w *world) crowd(kind schema.GroupVersionKind, name string, many int, spec func(i int) map[string]any) *crowd {
	w.t.Helper()
	c := &crowd{w: w, kind: kind, name: name, many: many}
	w.t.Cleanup(c.remove)
	w.concurrently(many, func(i int) error {
		xr := c.xr(i)
		xr.Object["spec"] = spec(i)
		return w.admin.Create(w.t.Context(), xr)
	})
	return c
}

// xr is the name of an XR, and nothing else of it.
func (c *crowd) xr(i int) *unstructured.Unstructured {
	return c.w.object(c.kind, c.name+"-"+strconv.Itoa(i))
}

// eventually waits until something is true of each XR. Most often it is true of
// all when it is of the last, so that one look at all is enough.
func (c *crowd) eventually(what string, ok func(*unstructured.Unstructured) (bool, string)) {
	c.w.t.Helper()
	await := func(xr *unstructured.Unstructured) {
		c.w.t.Helper()
		c.w.eventually(what+" of "+xr.GetName(), func() (bool, string) { return ok(c.w.live(xr)) })
	}
	await(c.xr(c.many - 1))
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.kind)
	c.w.must(c.w.admin.List(c.w.t.Context(), list, client.InNamespace(c.w.namespace)))
	if len(list.Items) != c.many {
		c.w.t.Fatalf("there are %d XRs, want %d", len(list.Items), c.many)
	}
	for i := range list.Items {
		if done, _ := ok(&list.Items[i]); !done {
			await(&list.Items[i])
		}
	}
}

// ready waits until each XR is composed and ready.
func (c *crowd) ready() {
	c.w.t.Helper()
	c.eventually("Synced and Ready", func(xr *unstructured.Unstructured) (bool, string) {
		synced, ready := conditionIn(xr, "Synced"), conditionIn(xr, "Ready")
		return synced["status"] == "True" && synced["reason"] == "ReconcileSuccess" &&
			ready["status"] == "True" && ready["reason"] == "Available", fmt.Sprint(synced, ready)
	})
}

// shows waits until each XR's status has a value.
func (c *crowd) shows(value string) {
	c.w.t.Helper()
	c.eventually("status.value", func(xr *unstructured.Unstructured) (bool, string) {
		shown, _, _ := unstructured.NestedString(xr.Object, "status", "value")
		return shown == value, shown
	})
}

// remove deletes the XRs and waits until they are gone.
func (c *crowd) remove() {
	c.w.t.Helper()
	ctx := cleanupContext(c.w.t)
	in := client.InNamespace(c.w.namespace)
	xr := &unstructured.Unstructured{}
	xr.SetGroupVersionKind(c.kind)
	c.w.must(c.w.admin.DeleteAllOf(ctx, xr, in))
	c.w.eventually("the XRs to be gone", func() (bool, string) {
		left := &metav1.PartialObjectMetadataList{}
		left.SetGroupVersionKind(c.kind)
		c.w.must(c.w.admin.List(ctx, left, in, client.Limit(1)))
		return len(left.Items) == 0, fmt.Sprintf("%d and %v more", len(left.Items), left.RemainingItemCount)
	})
}

// concurrently does something for each number below n, and waits for all.
func (w *world) concurrently(n int, do func(i int) error) {
	w.t.Helper()
	var all errgroup.Group
	all.SetLimit(16)
	for i := range n {
		all.Go(func() error { return do(i) })
	}
	w.must(all.Wait())
}
