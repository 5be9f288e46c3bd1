// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/internal/breaker"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

// breaking gives XRs another breaker.
func breaking(s breaker.Settings) setting {
	return func(o *app.Options, _ *rest.Config) { o.Breaker = s }
}

// writer composes a ConfigMap whose value is the XR's spec.value, and requires the one
// that spec.settings names, if it names one: then that one's value is the composed one's.
func writer(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	spec, _ := respond.Observed(req)["spec"].(map[string]any)
	xr := functions.XR(req)
	written, _ := spec["value"].(string)
	if name, ok := spec["settings"].(string); ok {
		respond.Require(rsp, "settings", settings(xr.Namespace, name))
		found, _ := respond.Required(req, "settings")
		written = value(found)
	}
	respond.Desire(rsp, "written", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": xr.Name + "-written"},
		"data":     map[string]any{"value": written},
	}, fnv1.Ready_READY_TRUE)
	return rsp, nil
}

// opponent is somebody who sets a ConfigMap's value to "theirs" whenever it is another.
type opponent struct {
	changes atomic.Int64
	stop    func()
}

func (w *world) opponent(name string) *opponent {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	list := &corev1.ConfigMapList{}
	watch, err := w.admin.Watch(ctx, list, client.InNamespace(w.namespace), client.MatchingFields{"metadata.name": name})
	w.must(err)
	o, done := &opponent{}, make(chan struct{})
	o.stop = func() {
		cancel()
		<-done
	}
	w.t.Cleanup(o.stop)
	go func() {
		defer close(done)
		defer watch.Stop()
		for event := range watch.ResultChan() {
			cm, ok := event.Object.(*configMap)
			if !ok || cm.Data["value"] == "theirs" || cm.DeletionTimestamp != nil {
				continue
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"theirs"}}`))
			err := w.admin.Patch(ctx, cm, patch, client.FieldOwner("opponent"))
			switch {
			case err == nil:
				o.changes.Add(1)
			case ctx.Err() == nil && !apierrors.IsNotFound(err):
				w.t.Errorf("the opponent can't write: %v", err)
				return
			}
		}
	}()
	return o
}

// setValue sets the value of a ConfigMap, which it creates if there is none.
func (w *world) setValue(name, value string) {
	w.t.Helper()
	cm := w.configMap(name, nil, map[string]string{"value": value})
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"value":%q}}`, value))
	err := w.admin.Patch(w.t.Context(), cm, patch)
	if apierrors.IsNotFound(err) {
		w.create(w.configMap(name, nil, map[string]string{"value": value}))
		return
	}
	w.must(err)
}

// counts returns how often an object has changed from now on.
func (w *world) counts(obj client.Object) func() int64 {
	w.t.Helper()
	gvk, err := w.admin.GroupVersionKindFor(obj)
	w.must(err)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	watch, err := w.admin.Watch(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingFields{"metadata.name": obj.GetName()})
	w.must(err)
	var changes atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if event.Type == apiwatch.Modified {
				changes.Add(1)
			}
		}
	}()
	w.t.Cleanup(func() {
		watch.Stop()
		<-done
	})
	return changes.Load
}

// passes waits for what may not happen in that time.
func (w *world) passes(d time.Duration) { <-time.After(d) }

// openings returns how many circuits have opened.
func (w *world) openings() float64 {
	w.t.Helper()
	return w.counted("crosswatch_circuit_openings_total", nil)
}

// circuits returns how many circuits of the kind's XRs are open.
func (w *world) circuits(kind string) float64 {
	w.t.Helper()
	return w.counted("crosswatch_circuits_open", map[string]string{"controller": strings.ToLower(kind) + "s." + group})
}

// Case F1: an XR and somebody else undo each other at full speed. The XR is slowed and
// says over what, others are not, and it is its old self once the other gives in.
func TestF1AnXRThatSomebodyUndoesIsSlowedAndNamesTheObject(t *testing.T) {
	s := breaker.DefaultSettings()
	s.Budget, s.Refill, s.LongestPause, s.Recovery = 30, 300*time.Millisecond, time.Second/2, 3*time.Second/2
	w, kind, _ := composing(t, "writer", writer, breaking(s))
	w.create(w.configMap("settings", nil, map[string]string{"value": "one"}))
	other := w.xr(kind, "other", map[string]any{"settings": "settings"})
	xr := w.xr(kind, "xr", map[string]any{"value": "ours"})
	w.ready(xr, other)

	start := time.Now()
	o := w.opponent("xr-written")
	message := w.condition(xr, "Responsive", "False", "WatchCircuitOpen")
	opened, budget := o.changes.Load(), int64(s.Budget+s.PerDependency)
	t.Logf("%d changes in %s until it said so: %s", opened, time.Since(start).Round(time.Millisecond), message)
	if !strings.Contains(message, "ConfigMap "+w.namespace+"/xr-written") {
		t.Errorf("the message does not name the object: %q", message)
	}
	if back := int64(time.Since(start) / s.Refill); opened < budget || opened > budget+back+5 {
		t.Errorf("it was slowed after %d changes, want %d and at most %d that came back", opened, budget, back)
	}

	// While they fight, others are as quick as ever, and the condition stays as it is.
	stored := w.conditionOf(xr, "Responsive")
	for i := range 10 {
		w.promptly("the other XR's answer", func() { w.setValue("settings", strconv.Itoa(i)) },
			w.has(w.configMap("other-written", nil, nil), strconv.Itoa(i), "data", "value"))
	}
	before, since := o.changes.Load(), time.Now()
	w.passes(2 * time.Second)
	fought, most := o.changes.Load()-before, int64(time.Since(since)/s.LongestPause)+6
	t.Logf("%d changes in %s while slowed", fought, time.Since(since).Round(time.Millisecond))
	if fought == 0 || fought > most {
		t.Errorf("%d changes while slowed, want some and at most %d", fought, most)
	}
	if now := w.conditionOf(xr, "Responsive"); fmt.Sprint(now) != fmt.Sprint(stored) {
		t.Errorf("the condition was rewritten: %v, before %v", now, stored)
	}

	o.stop()
	w.eventually("the XR's own value", w.has(w.configMap("xr-written", nil, nil), "ours", "data", "value"))
	w.condition(xr, "Responsive", "True", "WatchCircuitClosed")
	if open := w.circuits(sample); open != 0 {
		t.Errorf("%v circuits are open, want none", open)
	}
	w.promptly("the answer of an XR that is itself again", func() { w.setValue("xr-written", "strange") },
		w.has(w.configMap("xr-written", nil, nil), "ours", "data", "value"))
}

// Case F1: what an XR answers another object with is slowed if it never ends, and its
// last change is answered all the same, without any other event.
func TestF1TheLastChangeIsAnsweredThoughTheXRIsSlowed(t *testing.T) {
	w, kind, _ := composing(t, "writer", writer, breaking(breaker.Settings{
		Budget: 10, Refill: 500 * time.Millisecond, LongestPause: time.Minute, Recovery: 5 * time.Second,
	}))
	w.setValue("settings", "none")
	xr := w.xr(kind, "xr", map[string]any{"settings": "settings"})
	w.ready(xr)

	written := w.configMap("xr-written", nil, nil)
	answers := w.counts(written)
	var message map[string]any
	changes := 0
	w.eventually("the XR to say that it is slowed", func() (bool, string) {
		changes++
		w.setValue("settings", strconv.Itoa(changes))
		message = w.conditionOf(xr, "Responsive")
		return message["status"] == "False", fmt.Sprint(message)
	})
	if text := fmt.Sprint(message["message"]); !strings.Contains(text, "ConfigMap "+w.namespace+"/settings") {
		t.Errorf("the message does not name the object: %q", text)
	}
	before := answers()
	for range 100 {
		changes++
		w.setValue("settings", strconv.Itoa(changes))
	}
	// The next run but that of the changes is the one that closes the circuit.
	if took := w.eventually("the last change's answer", w.has(written, changes, "data", "value")); took > 3*time.Second {
		t.Errorf("the last change was answered after %s, want half a second", took)
	}
	if answered := answers() - before; answered > 10 {
		t.Errorf("100 changes in a row were answered %d times, want few", answered)
	}
	w.condition(xr, "Responsive", "True", "WatchCircuitClosed")
}

// Case F2: an XR of 100 objects, each of which gets ready by itself, is no loop: what
// an XR may write grows with what it depends on.
func TestF2AnXRWhoseManyObjectsGetReadyIsNotSlowed(t *testing.T) {
	const many = 100
	w, kind, _ := composing(t, "maker", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		ready := 0
		for i := range many {
			name := fmt.Sprintf("made-%d", i)
			isReady := fnv1.Ready_READY_FALSE
			if observed, ok := respond.ObservedComposed(req, name); ok && value([]map[string]any{observed}) == "ready" {
				isReady = fnv1.Ready_READY_TRUE
				ready++
			}
			respond.Desire(rsp, name, map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
			}, isReady)
		}
		respond.Status(rsp, map[string]any{"value": strconv.Itoa(ready)})
		return rsp, nil
	}, breaking(breaker.Settings{Budget: 3, PerDependency: 1, Refill: time.Hour, LongestPause: time.Hour, Recovery: 2 * time.Hour}))
	opened := w.openings()
	xr := w.xr(kind, "xr", nil)
	w.condition(xr, "Synced", "True", "ReconcileSuccess")
	shown := w.counts(xr)
	for batch := range many / 10 {
		for i := range 10 {
			w.setValue(fmt.Sprintf("made-%d", 10*batch+i), "ready")
		}
		w.eventually("their readiness to show", w.has(xr, 10*(batch+1), "status", "value"))
	}
	w.ready(xr)
	t.Logf("the XR's status was written %d times", shown())
	if shown() < many/10 {
		t.Errorf("the XR's status was written %d times: too few to tell whether that counts", shown())
	}
	if n := w.openings() - opened; n != 0 {
		t.Errorf("the circuit opened %v times", n)
	}
}

// Case F2: an object that changes often, and for which nothing is written, is no loop
// either, nor is a run that nothing asked for.
func TestF2ChangesThatLeadToNoWriteAreNotCounted(t *testing.T) {
	w, kind, server := composing(t, "asker", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		respond.Ready(rsp, fnv1.Ready_READY_TRUE)
		respond.Require(rsp, "settings", settings(functions.XR(req).Namespace, "settings"))
		return rsp, nil
	}, breaking(breaker.Settings{Budget: 3, Refill: time.Hour, LongestPause: time.Hour, Recovery: 2 * time.Hour}))
	opened := w.openings()
	w.setValue("settings", "none")
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)
	w.settled(server.TotalCalls)
	server.Reset()
	for i := range 200 {
		w.setValue("settings", strconv.Itoa(i))
	}
	if calls := w.settled(server.TotalCalls); calls < 20 {
		t.Errorf("200 changes led to %d calls: too few to tell whether they count", calls)
	}
	if n := w.openings() - opened; n != 0 {
		t.Errorf("the circuit opened %v times", n)
	}
	if c := w.conditionOf(xr, "Responsive"); len(c) != 0 {
		t.Errorf("an XR that was never slowed has condition %v", c)
	}
}

// Case F3: an XR that is slowed does what its user wants at once, and one that comes
// in its place after its deletion starts afresh.
func TestF3AnXRThatTakesASlowedOnesPlaceIsNotSlowed(t *testing.T) {
	w, kind, _ := composing(t, "writer", writer, breaking(breaker.Settings{
		Budget: 10, Refill: 100 * time.Millisecond, LongestPause: time.Hour, Recovery: 2 * time.Hour,
	}))
	written := w.configMap("xr-written", nil, nil)
	xr := w.xr(kind, "xr", map[string]any{"value": "ours"})
	w.ready(xr)
	o := w.opponent("xr-written")
	w.condition(xr, "Responsive", "False", "WatchCircuitOpen")
	w.eventually("a pause of more than a second", func() (bool, string) {
		before := o.changes.Load()
		w.passes(2 * promptly)
		return o.changes.Load() == before, strconv.FormatInt(before, 10)
	})
	o.stop()
	w.promptly("the effect of a user's own change", func() {
		update(w, xr, func(x *unstructured.Unstructured) { x.Object["spec"].(map[string]any)["value"] = "another" })
	}, w.has(written, "another", "data", "value"))
	if open := w.circuits(sample); open != 1 {
		t.Errorf("%v circuits are open, want 1", open)
	}

	w.promptly("the end of a slowed XR", func() { w.must(w.admin.Delete(t.Context(), xr)) }, func() (bool, string) {
		return w.live(xr).GetName() == "", "it is there"
	})
	w.eventually("its circuit to be forgotten", func() (bool, string) { return w.circuits(sample) == 0, "it is open" })
	w.eventually("what it composed to be gone", func() (bool, string) { return w.live(written).GetName() == "", "it is there" })

	w.promptly("the first run of another XR of that name", func() {
		xr = w.xr(kind, "xr", map[string]any{"value": "fresh"})
	}, w.has(written, "fresh", "data", "value"))
	w.promptly("its answer to a change", func() { w.setValue("xr-written", "strange") }, w.has(written, "fresh", "data", "value"))
	if c := w.conditionOf(xr, "Responsive"); len(c) != 0 {
		t.Errorf("an XR that was never slowed has condition %v", c)
	}
}

// Case S3: however many revisions a Composition gets, the XRs that follow it are not
// charged for that, and those of another one are left alone.
func TestS3NewRevisionsAreChargedToNobody(t *testing.T) {
	w, kind, server := composing(t, "writer", writer, breaking(breaker.Settings{
		Budget: 3, Refill: time.Hour, LongestPause: time.Hour, Recovery: 2 * time.Hour,
	}))
	server.Handle(func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		respond.Ready(rsp, fnv1.Ready_READY_TRUE)
		respond.Status(rsp, map[string]any{"value": req.GetInput().GetFields()["value"].GetStringValue()})
		return rsp, nil
	})
	opened := w.openings()
	followed := installation.Composition(kind, step("writer", map[string]any{"value": "0"}))
	followed.Name += "-followed-" + w.namespace
	w.create(followed)
	xr := w.xr(kind, "xr", map[string]any{"crossplane": map[string]any{"compositionRef": map[string]any{"name": followed.Name}}})
	other := w.xr(kind, "other", map[string]any{"crossplane": map[string]any{"compositionRef": map[string]any{"name": "sample-" + w.namespace}}})
	w.ready(xr, other)
	w.settled(server.TotalCalls)
	server.Reset()
	ran := w.counted("crosswatch_events_enqueued_total", nil)
	for i := range 10 {
		next := strconv.Itoa(i + 1)
		w.promptly("the new revision's effect", func() {
			update(w, followed, func(c *v1.Composition) {
				c.Spec.Pipeline[0] = step("writer", map[string]any{"value": next})
			})
		}, w.has(xr, next, "status", "value"))
	}
	w.settled(server.TotalCalls)
	t.Logf("10 revisions woke XRs %v times", w.counted("crosswatch_events_enqueued_total", nil)-ran)
	if calls := server.Calls(key(other)); calls != 0 {
		t.Errorf("the function was called %d times for the XR of another Composition", calls)
	}
	if n := w.openings() - opened; n != 0 {
		t.Errorf("the circuit opened %v times", n)
	}
	w.promptly("the answer to a user's change", func() {
		update(w, xr, func(x *unstructured.Unstructured) {
			x.SetAnnotations(map[string]string{"crossplane.io/reconcile-requested-at": "now"})
		})
	}, w.has(xr, "now", "status", "lastHandledReconcileAt"))
}
