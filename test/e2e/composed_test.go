// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

func gadget(name string, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": gadgets.GroupVersion().String(), "kind": gadgets.Kind,
		"metadata": map[string]any{"name": name},
		"spec":     spec,
	}
}

// relay passes what its gadget "a" reads on to the XR's status, and what the
// XR's status says on to the spec of gadget "b".
func relay(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	if a, ok := respond.ObservedComposed(req, "a"); ok {
		if reading, ok, _ := unstructured.NestedString(a, "status", "reading"); ok {
			respond.Status(rsp, map[string]any{"reading": reading})
		}
	}
	b := map[string]any{}
	if reading, ok, _ := unstructured.NestedString(respond.Observed(req), "status", "reading"); ok {
		b["color"] = reading
	}
	respond.Desire(rsp, "a", gadget(functions.XR(req).Name+"-a", map[string]any{"size": "small"}), fnv1.Ready_READY_TRUE)
	respond.Desire(rsp, "b", gadget(functions.XR(req).Name+"-b", b), fnv1.Ready_READY_TRUE)
	return rsp, nil
}

func TestARelayOverThreeHopsSettlesWithinASecond(t *testing.T) {
	w, kind, server := composing(t, "relay", relay)
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)
	w.settled(server.TotalCalls)

	server.Reset()
	a, b := w.object(gadgets, "xr-a"), w.object(gadgets, "xr-b")
	w.promptly("the reading's arrival in b", func() {
		live := w.live(a)
		w.must(unstructured.SetNestedField(live.Object, "blue", "status", "reading"))
		w.must(w.admin.Status().Update(t.Context(), live))
	}, w.has(b, "blue", "spec", "color"))
	if got := w.field(xr, "status", "reading"); got != "blue" {
		t.Errorf("the XR's status says %v", got)
	}

	// The change of a, the XR's own status and the change of b each lead to one
	// run at most; the last writes nothing, or there would be another.
	if calls := w.settled(server.TotalCalls); calls > 3 {
		t.Errorf("the function was called %d times, want at most 3", calls)
	}
	version := w.live(xr).GetResourceVersion()
	update(w, xr, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"note": "wakes the XR"})
	})
	noted := w.live(xr).GetResourceVersion()
	calls := w.settled(server.TotalCalls)
	if after := w.live(xr).GetResourceVersion(); after != noted {
		t.Errorf("a run that changed nothing wrote to the XR: version %s, then %s, then %s", version, noted, after)
	}
	if calls > 4 {
		t.Errorf("the note led to more than one run: %d calls in all", calls)
	}
}

// meddler changes a composed object right after the operator's own apply of it,
// before the operator has seen the answer.
type meddler struct {
	next   http.RoundTripper
	path   string
	meddle func()
	once   sync.Once
}

func (m *meddler) RoundTrip(r *http.Request) (*http.Response, error) {
	rsp, err := m.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, m.path) && rsp.StatusCode < 300 {
		m.once.Do(m.meddle)
	}
	return rsp, err
}

func TestAComposedObjectThatIsChangedBeforeTheRunEndsIsCorrected(t *testing.T) {
	w := newWorld(t)
	meddled := make(chan struct{})
	meddle := func() {
		defer close(meddled)
		live := w.live(w.object(gadgets, "xr-a"))
		if err := unstructured.SetNestedField(live.Object, "tampered", "spec", "size"); err != nil {
			t.Error(err)
		}
		if err := w.admin.Update(context.WithoutCancel(t.Context()), live); err != nil {
			t.Error(err)
		}
	}
	w.operate(func(_ *app.Options, cfg *rest.Config) {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return &meddler{next: next, path: "/gadgets/xr-a", meddle: meddle}
		})
	})
	w.function("relay", relay)
	kind := w.shared(sample)
	w.compose(kind, step("relay", nil))
	w.xr(kind, "xr", nil)

	<-meddled
	took := w.eventually("the correction", w.has(w.object(gadgets, "xr-a"), "small", "spec", "size"))
	if took > promptly {
		t.Errorf("the correction took %s, want at most %s", took, promptly)
	}
}

func TestAComposedObjectThatIsDeletedComesBackAtOnce(t *testing.T) {
	w, kind, server := composing(t, "relay", relay)
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)
	w.settled(server.TotalCalls)

	a := w.live(w.object(gadgets, "xr-a"))
	old := a.GetUID()
	w.promptly("the return", func() { w.must(w.admin.Delete(t.Context(), a)) }, func() (bool, string) {
		uid := w.live(a).GetUID()
		return uid != "" && uid != old, fmt.Sprint(uid)
	})
}

func TestAResourceThatIsNoLongerDesiredIsDeleted(t *testing.T) {
	w, kind, server := composing(t, "relay", relay)
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)

	server.Handle(func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp, err := relay(req)
		delete(rsp.GetDesired().GetResources(), "b")
		return rsp, err
	})
	update(w, xr, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"note": "now"}) })
	b := w.object(gadgets, "xr-b")
	w.eventually("b to be gone", func() (bool, string) { uid := w.live(b).GetUID(); return uid == "", string(uid) })
	w.eventually("b's reference to be gone", func() (bool, string) {
		refs := fmt.Sprint(w.field(xr, "spec", "crossplane", "resourceRefs"))
		return !strings.Contains(refs, "xr-b"), refs
	})
	if w.live(w.object(gadgets, "xr-a")).GetUID() == "" {
		t.Error("a is gone, too")
	}
}

func TestDeletingAnXRDeletesWhatItComposes(t *testing.T) {
	w, kind, _ := composing(t, "relay", relay)
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)
	w.remove(xr)
	a := w.object(gadgets, "xr-a")
	w.eventually("what it composed to be collected", func() (bool, string) { uid := w.live(a).GetUID(); return uid == "", string(uid) })
}

func TestAPausedXRRestsUntilItIsNot(t *testing.T) {
	w, kind, server := composing(t, "relay", relay)
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)
	update(w, xr, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
	})
	w.condition(xr, "Synced", "False", "ReconcilePaused")
	server.Reset()
	a := w.object(gadgets, "xr-a")
	update(w, a, func(u *unstructured.Unstructured) {
		w.must(unstructured.SetNestedField(u.Object, "tampered", "spec", "size"))
	})
	if calls := w.settled(server.TotalCalls); calls != 0 {
		t.Errorf("a paused XR's function was called %d times", calls)
	}
	update(w, xr, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
	w.eventually("the correction", w.has(a, "small", "spec", "size"))
	w.condition(xr, "Synced", "True", "ReconcileSuccess")
}
