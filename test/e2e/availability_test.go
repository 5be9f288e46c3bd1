// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

const (
	// takeover is what the product promises of a standby whose leader is gone
	// without a word, and handover of one whose leader says goodbye.
	takeover = 20 * time.Second
	handover = 5 * time.Second
)

// pulse remembers when a function was called, and the longest time it was not.
type pulse struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

// beat is a function that notes its calls.
func (p *pulse) beat(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	now := time.Now()
	p.mu.Lock()
	if !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last = now
	p.mu.Unlock()
	return reader(req)
}

// reset starts measuring now.
func (p *pulse) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.longest = time.Now(), 0
}

func (p *pulse) pause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.longest
}

// leader is who holds the operator's lease; empty if nobody does.
func (w *world) leader() string {
	w.t.Helper()
	lease := &coordinationv1.Lease{}
	err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: installation.Namespace, Name: "crosswatch-leader-election"}, lease)
	w.must(client.IgnoreNotFound(err))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// leads waits until somebody else than before holds the lease, and returns who.
func (w *world) leads(before string) string {
	w.t.Helper()
	var now string
	w.eventually("a leader", func() (bool, string) {
		now = w.leader()
		return now != "" && now != before, now
	})
	return now
}

// load changes a ConfigMap twice a second, to 1, 2, 3 and so on, until it is told
// to stop, and then returns the last value.
func (w *world) load(cm *configMap) (stop func() int) {
	w.t.Helper()
	ctx := w.t.Context()
	ended, last := make(chan struct{}), make(chan int, 1)
	go func() {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; {
			select {
			case <-ended:
				last <- n
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"value":"%d"}}`, n+1))
			if err := w.admin.Patch(ctx, cm.DeepCopy(), patch); err != nil {
				w.t.Errorf("cannot change %s: %v", cm.Name, err)
				continue
			}
			n++
		}
	}()
	return func() int {
		close(ended)
		return <-last
	}
}

// reached is a condition for a crowd's eventually: the XR shows that value or a
// later one.
func reached(value int) func(*unstructured.Unstructured) (bool, string) {
	return func(xr *unstructured.Unstructured) (bool, string) {
		shown, _, _ := unstructured.NestedString(xr.Object, "status", "value")
		n, err := strconv.Atoi(shown)
		return err == nil && n >= value, shown
	}
}

// accounts waits until the replica that leads says of each kind that XRs depend on
// what has come of its watch, once it knows what each XR depends on.
func (w *world) accounts(leader string, want map[string]watchv1alpha1.WatchState) {
	w.t.Helper()
	total := &watchv1alpha1.DependencyWatchStatus{}
	total.Name = watchv1alpha1.NameCluster
	w.eventually("the watches of "+leader, func() (bool, string) {
		w.must(w.admin.Get(w.t.Context(), key(total), total))
		states := map[string]watchv1alpha1.WatchState{}
		for _, k := range total.Status.Kinds {
			states[k.Kind] = k.Watch
		}
		by, xrs := total.Status.Operator, total.Status.Composites
		return by != nil && by.Leader == leader && xrs.Tracked == xrs.Known && maps.Equal(states, want), fmt.Sprint(by, xrs, states)
	})
}

// Case S12 is among what holds of each replica, however it came to lead.
func TestS12AStandbyTakesOverUnderLoadWithEachKindWatchedOrReportedAndNoChangeLost(t *testing.T) {
	const xrs = 200
	w := newWorld(t)
	first := w.run(time.Second)
	firstName := w.leads("")
	second := w.run(time.Second)

	p := &pulse{}
	w.function("reader", p.beat)
	kind := w.shared(sample)
	w.compose(kind, step("reader", nil))
	cm := w.configMap("settings", nil, map[string]string{"value": "none yet"})
	w.create(cm)
	all := w.crowd(kind, "xr", xrs, func(int) map[string]any { return map[string]any{"settings": "settings"} })
	all.ready()
	w.function("hopeful", hopeful)
	other := w.shared(bystander)
	w.compose(other, step("hopeful", nil))
	w.fails(w.xr(other, "hopeless", nil), late.Kind)
	watches := map[string]watchv1alpha1.WatchState{"ConfigMap": watchv1alpha1.WatchActive, late.Kind: watchv1alpha1.WatchNotFound}
	w.accounts(firstName, watches)

	stop := w.load(cm)
	w.eventually("changes under load", func() (bool, string) { return reached(2)(w.live(all.xr(0))) })
	p.reset()
	first.kill()
	secondName := w.leads(firstName)
	w.eventually("the standby's first call", func() (bool, string) { return p.pause() > time.Second, p.pause().String() })
	final := stop()
	all.eventually("the last change", reached(final))
	w.accounts(secondName, watches)
	t.Logf("time without progress after the leader was killed: %s", p.pause().Round(time.Millisecond))
	if p.pause() > takeover {
		t.Errorf("no progress for %s after the leader was killed, want at most %s", p.pause(), takeover)
	}

	w.run(time.Second)
	p.reset()
	second.stop()
	thirdName := w.leads(secondName)
	update(w, cm, func(c *configMap) { c.Data["value"] = "handed over" })
	w.eventually("a change after the hand-over", w.has(all.xr(0), "handed over", "status", "value"))
	t.Logf("time without progress after the leader was stopped: %s", p.pause().Round(time.Millisecond))
	if p.pause() > handover {
		t.Errorf("no progress for %s after the leader was stopped, want at most %s", p.pause(), handover)
	}
	w.accounts(thirdName, watches)
}
