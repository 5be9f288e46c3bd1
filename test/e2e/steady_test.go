// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// follower requires an object by its name and others by a label. What it makes of
// the object's value, the XR's spec says: the XR's status, a gadget, both, or
// nothing.
func follower(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	xr := functions.XR(req)
	respond.Ready(rsp, fnv1.Ready_READY_TRUE)
	respond.Require(rsp, "settings", settings(xr.Namespace, "settings"))
	respond.Require(rsp, "pool", respond.Selector{APIVersion: "v1", Kind: "ConfigMap", Labels: map[string]string{"pool": xr.Namespace}})

	found, _ := respond.Required(req, "settings")
	pool, _ := respond.Required(req, "pool")
	shown := value(found) + "/" + value(pool)
	spec, _ := respond.Observed(req)["spec"].(map[string]any)
	size := "constant"
	if spec["composes"] == true {
		size = shown
	}
	if spec["shows"] == true {
		respond.Status(rsp, map[string]any{"value": shown})
	}
	respond.Desire(rsp, "gadget", gadget(xr.Name+"-gadget", map[string]any{"size": size}), fnv1.Ready_READY_TRUE)
	return rsp, nil
}

// writes counts what the operator wrote in the test's namespace since the log
// began, but for Events, which it sends when it gets to it.
func (w *world) writes() int {
	w.t.Helper()
	return w.written(func(resource string) bool { return resource != "events" })
}

// written counts what the operator wrote of such resources in the test's
// namespace since the log began.
func (w *world) written(isAbout func(resource string) bool) int {
	w.t.Helper()
	entries, err := w.auditLog.Entries(func(entry *auditv1.Event) bool {
		switch entry.Verb {
		case "create", "update", "patch", "delete":
			return isOperators(entry) && entry.ObjectRef != nil &&
				entry.ObjectRef.Namespace == w.namespace && isAbout(entry.ObjectRef.Resource)
		}
		return false
	}, w.namespace)
	w.must(err)
	return len(entries)
}

// A change costs one call an XR if nothing comes of it, and one more if its status
// or a composed object changes by it, since the function is shown those. A change
// to what nobody requires costs none, nor does a resync.
func TestAHundredXRsCallTheirFunctionNoMoreOftenThanItHasSomethingToSay(t *testing.T) {
	const many, resync = 100, 2 * time.Second
	behaviours := []struct {
		spec          map[string]any
		calls, writes int // of each XR after a change
	}{
		{spec: map[string]any{}, calls: 1, writes: 0},
		{spec: map[string]any{"shows": true}, calls: 2, writes: 1},
		{spec: map[string]any{"composes": true}, calls: 2, writes: 1},
		{spec: map[string]any{"shows": true, "composes": true}, calls: 2, writes: 2},
	}
	w, kind, server := composing(t, "follower", follower, func(o *app.Options, _ *rest.Config) { o.SyncInterval = resync })
	named := w.configMap("settings", nil, map[string]string{"value": "a"})
	pooled := w.configMap("member", map[string]string{"pool": w.namespace}, map[string]string{"value": "b"})
	other := w.configMap("other", nil, map[string]string{"value": "c"})
	for _, obj := range []*corev1.ConfigMap{named, pooled, other} {
		w.create(obj)
	}
	xrs := w.crowd(kind, "xr", many, func(i int) map[string]any { return behaviours[i%len(behaviours)].spec })
	xrs.ready()
	w.settled(server.TotalCalls)

	// costs checks what something costs each XR, if that is anything.
	costs := func(what string, anything bool, happen func()) {
		t.Helper()
		server.Reset()
		var err error
		w.auditLog, err = cluster.auditLog.FromNow()
		w.must(err)
		happen()
		w.settled(server.TotalCalls)
		writes := 0
		for i := range many {
			want := behaviours[i%len(behaviours)]
			if !anything {
				want.calls, want.writes = 0, 0
			}
			if got := server.Calls(key(xrs.xr(i))); got != want.calls {
				t.Errorf("%s: %d calls of an XR with spec %v, want %d", what, got, want.spec, want.calls)
			}
			writes += want.writes
		}
		if got := w.writes(); got != writes {
			t.Errorf("%s: %d writes, want %d", what, got, writes)
		}
	}
	change := func(obj *corev1.ConfigMap, value string) func() {
		return func() {
			update(w, obj, func(obj *corev1.ConfigMap) { obj.Data["value"] = value })
			w.eventually("the first call", func() (bool, string) { return server.TotalCalls() > 0, "none" })
		}
	}
	costs("an object required by name changes", true, change(named, "A"))
	costs("an object required by a label changes", true, change(pooled, "B"))
	costs("an object that nobody requires changes, and all are resynced twice", false, func() {
		update(w, other, func(obj *corev1.ConfigMap) { obj.Data["value"] = "C" })
		synced := func() float64 { return w.counted("crosswatch_reconciles_total", map[string]string{"result": "synced"}) }
		before := synced()
		w.eventually("two resyncs of each", func() (bool, string) {
			n := synced() - before
			return n >= 2*many, fmt.Sprint(n)
		})
	})
}

// C3: a function is called once in each TTL, not every two and not more often.
func TestC3AFunctionIsCalledOnceInEachTTL(t *testing.T) {
	const ttl, ttls = time.Second, 6
	w, kind, server := composing(t, "short", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		respond.TTL(rsp, ttl)
		respond.Ready(rsp, fnv1.Ready_READY_TRUE)
		return rsp, nil
	})
	w.ready(w.xr(kind, "xr", nil))

	// From one call to the last: what came before has nothing to do with it.
	first := server.TotalCalls() + 1
	calls := func(n int) func() (bool, string) {
		return func() (bool, string) {
			got := server.TotalCalls()
			return got >= n, strconv.Itoa(got)
		}
	}
	w.eventually("a call", calls(first))
	took := w.eventually("a call in each TTL", calls(first+ttls))
	if took < (ttls-1)*ttl || took > (ttls+1)*ttl+ttl/2 {
		t.Errorf("%d calls took %s, want about %s", ttls, took, ttls*ttl)
	}
}
