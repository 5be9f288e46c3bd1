// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// settings is a selector of one ConfigMap by name.
func settings(namespace, name string) respond.Selector {
	return respond.Selector{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name}
}

// reader is a function that shows in the XR's status what it required: the
// ConfigMap that the XR's spec.settings names, if it names one, and those whose
// label color is what spec.color says, if it says one.
func reader(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	respond.Ready(rsp, fnv1.Ready_READY_TRUE)
	spec, _ := respond.Observed(req)["spec"].(map[string]any)
	namespace := functions.XR(req).Namespace
	status := map[string]any{}

	if name, ok := spec["settings"].(string); ok {
		respond.Require(rsp, "settings", settings(namespace, name))
		if found, asked := respond.Required(req, "settings"); asked {
			status["asked"] = true
			status["value"] = value(found)
		}
	}
	if color, ok := spec["color"].(string); ok {
		respond.Require(rsp, "colored", respond.Selector{APIVersion: "v1", Kind: "ConfigMap", Labels: map[string]string{"color": color}})
		if found, asked := respond.Required(req, "colored"); asked {
			status["colored"] = strings.Join(names(found), ",")
		}
	}
	respond.Status(rsp, status)
	return rsp, nil
}

// value is the "value" of the one ConfigMap, or "none".
func value(found []map[string]any) string {
	if len(found) == 0 {
		return "none"
	}
	v, _, _ := unstructured.NestedString(found[0], "data", "value")
	return v
}

func names(found []map[string]any) []string {
	var out []string
	for _, o := range found {
		u := unstructured.Unstructured{Object: o}
		out = append(out, u.GetNamespace()+"/"+u.GetName()+"="+value([]map[string]any{o}))
	}
	return out
}

func TestARequiredObjectIsChanged(t *testing.T) {
	w, kind, _ := composing(t, "reader", reader)
	cm := w.configMap("settings", nil, map[string]string{"value": "one"})
	w.create(cm)
	xr := w.xr(kind, "xr", map[string]any{"settings": "settings"})
	w.ready(xr)
	w.eventually("the first value", w.has(xr, "one", "status", "value"))

	w.promptly("the change's effect", func() {
		update(w, cm, func(c *configMap) { c.Data["value"] = "two" })
	}, w.has(xr, "two", "status", "value"))
}

func TestARequiredObjectIsCreatedAfterTheXRThatNamesIt(t *testing.T) {
	w, kind, _ := composing(t, "reader", reader)
	xr := w.xr(kind, "xr", map[string]any{"settings": "settings"})
	w.eventually("the answer that there is none", w.has(xr, "none", "status", "value"))

	w.promptly("the creation's effect", func() {
		w.create(w.configMap("settings", nil, map[string]string{"value": "here"}))
	}, w.has(xr, "here", "status", "value"))
}

func TestARequiredObjectIsDeleted(t *testing.T) {
	w, kind, _ := composing(t, "reader", reader)
	cm := w.configMap("settings", nil, map[string]string{"value": "here"})
	w.create(cm)
	xr := w.xr(kind, "xr", map[string]any{"settings": "settings"})
	w.eventually("the value", w.has(xr, "here", "status", "value"))

	w.promptly("the deletion's effect", func() { w.must(w.admin.Delete(t.Context(), cm)) },
		w.has(xr, "none", "status", "value"))
}

// Case B1: whatever happens to an object that a function only reads reconciles
// the XR at once, and no other XR.
func TestB1AnObjectRequiredByLabelIsCreatedChangedRelabelledAndDeleted(t *testing.T) {
	w, kind, server := composing(t, "reader", reader)
	color := w.namespace + "-blue" // labels match in every namespace, and tests share the cluster
	xr := w.xr(kind, "xr", map[string]any{"color": color})
	unrelated := w.xr(kind, "unrelated", map[string]any{"color": w.namespace + "-red"})
	w.ready(xr, unrelated)
	before := w.settled(func() int { return server.Calls(key(unrelated)) })

	cm := w.configMap("one", map[string]string{"color": color}, map[string]string{"value": "1"})
	id := w.namespace + "/one="
	w.promptly("the creation's effect", func() { w.create(cm) }, w.has(xr, id+"1", "status", "colored"))
	w.promptly("the change's effect", func() {
		update(w, cm, func(c *configMap) { c.Data["value"] = "2" })
	}, w.has(xr, id+"2", "status", "colored"))
	w.promptly("the effect of a label that no longer matches", func() {
		update(w, cm, func(c *configMap) { c.Labels["color"] = "grey" })
	}, w.has(xr, "", "status", "colored"))
	w.promptly("the effect of a label that matches again", func() {
		update(w, cm, func(c *configMap) { c.Labels["color"] = color })
	}, w.has(xr, id+"2", "status", "colored"))
	w.promptly("the deletion's effect", func() { w.must(w.admin.Delete(t.Context(), cm)) },
		w.has(xr, "", "status", "colored"))

	if after := w.settled(func() int { return server.Calls(key(unrelated)) }); after != before {
		t.Errorf("the unrelated XR's function was called %d times", after-before)
	}
}

// Case B2: what a function gets is in one fixed order, so that its request is
// the same as long as nothing changes.
func TestB2ObjectsRequiredByLabelComeInAFixedOrder(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	w.operate()
	server := w.function("reader", reader)
	kind := w.shared(sample)
	w.compose(kind, step("reader", nil))
	color := w.namespace
	for _, i := range []int{3, 9, 1, 7, 5, 0, 8, 2, 6, 4} {
		for _, in := range []*world{other, w} {
			in.create(in.configMap(fmt.Sprintf("cm-%d", i), map[string]string{"color": color}, map[string]string{"value": "x"}))
		}
	}
	xr := w.xr(kind, "xr", map[string]any{"color": color})
	w.ready(xr)
	w.settled(func() int { return server.Calls(key(xr)) })
	got := strings.Split(fmt.Sprint(w.field(xr, "status", "colored")), ",")
	if len(got) != 20 || !slices.IsSorted(got) {
		t.Errorf("got %d objects, sorted %v: %v", len(got), slices.IsSorted(got), got)
	}

	// A run that nothing but a request of it caused sends the same bytes.
	server.Reset()
	for token := range 3 {
		update(w, xr, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"crossplane.io/reconcile-requested-at": strconv.Itoa(token)})
		})
		w.eventually("the acknowledgement", w.has(xr, token, "status", "lastHandledReconcileAt"))
	}
	w.settled(func() int { return server.Calls(key(xr)) })
	requests := server.Requests(key(xr))
	if len(requests) < 3 {
		t.Fatalf("got %d requests, want one for each token at least", len(requests))
	}
	first, _ := respond.Required(requests[0], "colored")
	for _, r := range requests[1:] {
		if again, _ := respond.Required(r, "colored"); !slices.Equal(names(first), names(again)) {
			t.Errorf("the order changed from\n%v to\n%v", names(first), names(again))
		}
	}
}

// Case B4: a function can tell "not asked yet" from "asked, and there is none".
func TestB4AFunctionCanTellNotAskedFromNoneFound(t *testing.T) {
	w, kind, server := composing(t, "reader", reader)
	xr := w.xr(kind, "xr", map[string]any{"settings": "absent"})
	w.ready(xr)

	requests := server.Requests(key(xr))
	if _, asked := respond.Required(requests[0], "settings"); asked {
		t.Error("the first call carries an answer to what was not asked yet")
	}
	found, asked := respond.Required(requests[1], "settings")
	if !asked || len(found) != 0 {
		t.Errorf("the second call carries %d objects, asked: %v; want an entry without any", len(found), asked)
	}

	w.promptly("the creation's effect", func() {
		w.create(w.configMap("absent", nil, map[string]string{"value": "present"}))
	}, w.has(xr, "present", "status", "value"))
}

func TestTheXRHoldsNoTraceOfARequirement(t *testing.T) {
	w, kind, _ := composing(t, "secretive", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		respond.Require(rsp, "needle-requirement", settings(functions.XR(req).Namespace, "needle-object"))
		respond.Ready(rsp, fnv1.Ready_READY_TRUE)
		return rsp, nil
	})
	w.create(w.configMap("needle-object", nil, map[string]string{"value": "needle-value"}))
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)

	raw, err := w.live(xr).MarshalJSON()
	w.must(err)
	if strings.Contains(string(raw), "needle") {
		t.Errorf("the XR shows what its function required: %s", raw)
	}
}
