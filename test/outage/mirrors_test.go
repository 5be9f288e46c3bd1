// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	statuses   = watchv1alpha1.GroupVersion.WithKind("DependencyWatchStatus")
)

// shown is what an XR shows of the objects that it depends on.
type shown struct {
	Value   string // of the ConfigMap that spec.settings names, or none
	Colored string // the ConfigMaps with the label color that spec.color says
	Reading string // of the composed gadget's status
	Size    string // of the composed gadget: the value
}

// mirror composes a gadget of the size that the required ConfigMap has as its value,
// and shows in the XR's status all that it is shown.
func mirror(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	xr := functions.XR(req)
	spec, _ := respond.Observed(req)["spec"].(map[string]any)
	settings, _ := spec["settings"].(string)
	color, _ := spec["color"].(string)
	if ttl, ok := spec["ttlSeconds"].(float64); ok {
		respond.TTL(rsp, time.Duration(ttl)*time.Second)
	}
	respond.Ready(rsp, fnv1.Ready_READY_TRUE)
	respond.Require(rsp, "settings", respond.Selector{APIVersion: "v1", Kind: "ConfigMap", Namespace: xr.Namespace, Name: settings})
	respond.Require(rsp, "colored", respond.Selector{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: xr.Namespace, Labels: map[string]string{"color": color},
	})
	named, _ := respond.Required(req, "settings")
	colored, _ := respond.Required(req, "colored")
	value := valueOf(named)
	composed := req.GetObserved().GetResources()["gadget"].GetResource().AsMap()
	reading, _, _ := unstructured.NestedString(composed, "status", "reading")
	respond.Status(rsp, map[string]any{"value": value, "colored": namesOf(colored), "reading": reading})
	respond.Desire(rsp, "gadget", map[string]any{
		"apiVersion": gadgets.GroupVersion().String(), "kind": gadgets.Kind,
		"metadata": map[string]any{"name": gadgetOf(respond.Observed(req)), "namespace": xr.Namespace},
		"spec":     map[string]any{"size": value},
	}, fnv1.Ready_READY_TRUE)
	return rsp, nil
}

// gadgetOf is the name of the gadget that an XR composes. An XR of the same name
// composes another: it need not wait until the garbage collector has come to it.
func gadgetOf(xr map[string]any) string {
	u := unstructured.Unstructured{Object: xr}
	return u.GetName() + "-" + string(u.GetUID())
}

func valueOf(found []map[string]any) string {
	if len(found) == 0 {
		return "none"
	}
	value, _, _ := unstructured.NestedString(found[0], "data", "value")
	return value
}

// namesOf lists the objects, each with its value.
func namesOf(found []map[string]any) string {
	names := make([]string, 0, len(found))
	for _, o := range found {
		names = append(names, (&unstructured.Unstructured{Object: o}).GetName()+"="+valueOf([]map[string]any{o}))
	}
	return strings.Join(names, ",")
}

// mirrors is a world of XRs that mirror composes. All tests share it: what one has
// made of it, the next begins with.
type mirrors struct {
	*world

	round int // how many upheavals there were
}

// newMirrors returns the mirrors, all of which have converged.
func newMirrors(t *testing.T) *mirrors {
	t.Helper()
	if cluster.mirrors == nil {
		m := &mirrors{world: newWorld(t, "Mirror", mirror)}
		m.populate()
		cluster.mirrors = m
	}
	cluster.mirrors.bind(t)
	cluster.mirrors.converges()
	return cluster.mirrors
}

// populate makes a dozen XRs that depend on a few ConfigMaps, not all of which are
// there.
func (m *mirrors) populate() {
	m.t.Helper()
	m.define()
	for _, name := range []string{"a", "b", "c"} {
		m.create(m.configMap(name, nil, map[string]string{"value": "0"}))
	}
	for i := range 3 {
		m.create(m.configMap("pool-"+strconv.Itoa(i), colorOf(i), map[string]string{"value": "0"}))
	}
	m.first(m.xr(0))
	for i := 1; i < 12; i++ {
		m.create(m.xr(i))
	}
}

func colorOf(i int) map[string]string {
	return map[string]string{"color": []string{"red", "blue"}[i%2]}
}

// xr is an XR with a spec that follows from its number: of the ConfigMaps that it
// can name, d and e are not there at first.
func (m *mirrors) xr(i int) *unstructured.Unstructured {
	xr := m.object(m.kind, "xr-"+strconv.Itoa(i))
	xr.Object["spec"] = map[string]any{"settings": string(rune('a' + i%5)), "color": colorOf(i)["color"]}
	return xr
}

// upheaval changes something of everything that XRs depend on, past the proxy. Each
// change is one that only an event tells of.
func (m *mirrors) upheaval() {
	m.t.Helper()
	m.round++
	value := strconv.Itoa(m.round)
	set := func(cm *corev1.ConfigMap) { cm.Data["value"] = value }
	update(m.world, m.configMap("a", nil, nil), set)
	update(m.world, m.configMap("pool-0", nil, nil), set)
	update(m.world, m.configMap("pool-1", nil, nil), func(cm *corev1.ConfigMap) { cm.Labels = colorOf(m.round) })
	m.toggle(m.configMap("d", nil, map[string]string{"value": value}))
	m.toggle(m.configMap("b", nil, map[string]string{"value": value}))
	m.toggle(m.configMap("pool-2", colorOf(m.round), map[string]string{"value": value}))

	xrs := m.list(m.kind)
	update(m.world, m.object(gadgets, gadgetOf(xrs["xr-0"].Object)), func(u *unstructured.Unstructured) {
		u.Object["spec"] = map[string]any{"size": "wrong"}
	})
	m.remove(m.object(gadgets, gadgetOf(xrs["xr-1"].Object)))
	m.measure(gadgetOf(xrs["xr-2"].Object), value)

	m.replace(m.xr(3))
	m.toggle(m.xr(4))
	m.toggle(m.xr(20 + m.round%8))
	update(m.world, m.xr(5), func(u *unstructured.Unstructured) { u.Object["spec"] = m.xr(5 + m.round).Object["spec"] })
}

// replace makes another XR of the same name, and another spec, without waiting for
// the operator to let go of the one that is there.
func (m *mirrors) replace(xr *unstructured.Unstructured) {
	m.t.Helper()
	noFinalizers := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	m.eventually("the XR to be gone", func() (bool, string) {
		m.must(client.IgnoreNotFound(m.admin.Patch(m.t.Context(), xr.DeepCopy(), noFinalizers)))
		m.remove(xr)
		return m.list(m.kind)[xr.GetName()] == nil, "it is there"
	})
	xr.Object["spec"] = m.xr(m.round).Object["spec"]
	m.create(xr)
}

// toggle creates the object if it is not there, and else deletes it.
func (m *mirrors) toggle(obj client.Object) {
	m.t.Helper()
	err := m.admin.Delete(m.t.Context(), obj)
	if client.IgnoreNotFound(err) != nil {
		m.t.Fatal(err)
	}
	if err != nil {
		m.create(obj)
	}
}

// discard deletes the XR and waits until it is gone.
func (m *mirrors) discard(xr *unstructured.Unstructured) {
	m.t.Helper()
	ctx := context.WithoutCancel(m.t.Context())
	m.must(client.IgnoreNotFound(m.admin.Delete(ctx, xr)))
	m.eventually("the XR to be gone", func() (bool, string) {
		err := m.admin.Get(ctx, client.ObjectKeyFromObject(xr), xr)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// measure makes a gadget's status say something.
func (m *mirrors) measure(gadget, reading string) {
	m.t.Helper()
	patch := []byte(`{"status":{"reading":"` + reading + `"}}`)
	m.must(m.admin.Status().Patch(m.t.Context(), m.object(gadgets, gadget), client.RawPatch("application/merge-patch+json", patch)))
}

// converges waits until each XR shows what there is, and nothing is left of others,
// and until the operator says that it has come to know everything again.
func (m *mirrors) converges() {
	m.t.Helper()
	var want, got map[string]shown
	m.eventually("all XRs to show what there is", func() (bool, string) {
		want, got = m.wanted(), m.got()
		diff := cmp.Diff(want, got)
		return diff == "", "(-want +got):\n" + diff
	})
	m.eventually("the operator to be ready", func() (bool, string) { return ready(m.t) })
	m.is(statuses, m.name, "Watching", "True")
	m.is(statuses, m.name, "Converged", "True")
	m.counts(len(want))
}

// wanted is what each XR has to show of the objects that there are.
func (m *mirrors) wanted() map[string]shown {
	m.t.Helper()
	objects, composed := m.list(configMaps), m.list(gadgets)
	want := map[string]shown{}
	for name, xr := range m.list(m.kind) {
		settings, _, _ := unstructured.NestedString(xr.Object, "spec", "settings")
		color, _, _ := unstructured.NestedString(xr.Object, "spec", "color")
		var named, colored []map[string]any
		if cm := objects[settings]; cm != nil {
			named = append(named, cm.Object)
		}
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			if objects[key].GetLabels()["color"] == color {
				colored = append(colored, objects[key].Object)
			}
		}
		value := valueOf(named)
		want[name] = shown{Value: value, Colored: namesOf(colored), Reading: fieldOf(composed[gadgetOf(xr.Object)], "status", "reading"), Size: value}
	}
	return want
}

// got is what each XR shows.
func (m *mirrors) got() map[string]shown {
	m.t.Helper()
	composed := m.list(gadgets)
	got := map[string]shown{}
	for name, xr := range m.list(m.kind) {
		got[name] = shown{
			Value: fieldOf(xr, "status", "value"), Colored: fieldOf(xr, "status", "colored"), Reading: fieldOf(xr, "status", "reading"),
			Size: fieldOf(composed[gadgetOf(xr.Object)], "spec", "size"),
		}
	}
	return got
}

func fieldOf(u *unstructured.Unstructured, path ...string) string {
	if u == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(u.Object, path...)
	return value
}
