// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// common is a ConfigMap that many XRs require.
const common = "common"

// strict is a function that requires the ConfigMap with the XR's own name and the
// common one, shows both values in the XR's status, and can do nothing if its own
// is missing or bad.
func strict(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	xr := functions.XR(req)
	respond.Require(rsp, "own", settings(xr.Namespace, xr.Name))
	respond.Require(rsp, common, settings(xr.Namespace, common))
	own, asked := respond.Required(req, "own")
	shared, _ := respond.Required(req, common)
	switch {
	case !asked:
	case value(own) == "none", value(own) == "bad":
		respond.Fatal(rsp, "settings are %s", value(own))
	default:
		respond.Status(rsp, map[string]any{"value": value(own) + " " + value(shared)})
		respond.Ready(rsp, fnv1.Ready_READY_TRUE)
	}
	return rsp, nil
}

const (
	// soon is what the product promises of 99 wake-ups in a hundred, where nothing
	// else keeps the machine busy.
	soon = 250 * time.Millisecond
	// unhurried is how long no more than one in a hundred creations takes on such a
	// machine, and busy how much longer all may take on another.
	unhurried = 50 * time.Millisecond
	busy      = 4
)

// A FATAL run is tried again after a delay, and that costs no write as long as it
// comes to the same, nor does a restart of the operator. But nobody waits for it:
// the object that is missing wakes the XR by coming. And an object that all the XRs
// require wakes all at once.
func TestAHundredFatalXRsAreEachWokenByWhatTheyLackAndAllByWhatTheyShare(t *testing.T) {
	const many, retries, delay = 100, 2, 500 * time.Millisecond
	w := newWorld(t)
	first := w.operate(retryAfter(delay))
	server := w.function("strict", strict)
	kind := w.shared(sample)
	w.compose(kind, step("strict", nil))
	w.setValue(common, "one")
	xrs := w.crowd(kind, "xr", many, func(int) map[string]any { return map[string]any{} })
	xrs.eventually("what it lacks", func(xr *unstructured.Unstructured) (bool, string) {
		message := fmt.Sprint(conditionIn(xr, "Synced")["message"])
		return strings.Contains(message, `"strict"`) && strings.Contains(message, "settings are none"), message
	})
	anything := func() int { return w.written(func(string) bool { return true }) }
	w.settled(anything)

	var err error
	w.auditLog, err = cluster.auditLog.FromNow()
	w.must(err)
	before, began := w.fatalRuns(), time.Now()
	w.endFatally(before + retries*many)
	runs, delays := w.fatalRuns()-before, int(time.Since(began)/delay)+1
	if runs > float64(many*delays) {
		t.Errorf("%.0f runs of %d XRs within %d delays", runs, many, delays)
	}
	if got := anything(); got != 0 {
		t.Errorf("%d writes about XRs that are tried again and as FATAL as before", got)
	}
	first.stop()
	before, waits := w.fatalRuns(), w.runsThat("waiting")
	// With a worker for each, no XR queues behind the writes of others, which a
	// small machine's API server takes one after the other.
	w.operate(retryAfter(time.Hour), func(o *app.Options, _ *rest.Config) { o.MaxConcurrentReconciles = many })
	w.endFatally(before + many)
	w.settled(func() int { return int(w.fatalRuns()) })
	// On a busy machine the new operator's watch may take a second to begin, which
	// XRs do say, and then that they are FATAL.
	waited := int(w.runsThat("waiting") - waits)
	if got := anything(); got > 3*waited {
		t.Errorf("%d writes about XRs that are as FATAL after a restart as before, of which %d waited for a watch", got, waited)
	}

	before = w.fatalRuns()
	slack := xrs.wakeOneAfterTheOther()
	xrs.ready()
	if got := w.fatalRuns() - before; got != 0 {
		t.Errorf("%.0f runs were FATAL without any reason to run", got)
	}
	xrs.wakeAllAtOnce(server, time.Duration(slack)*promptly)
	xrs.shows("good two")
	w.toldOnceEach(many, waited, "settings are none")

	xr := xrs.xr(0)
	w.setValue(xr.GetName(), "bad")
	w.fails(xr, "settings are bad")
	w.promptly("the second recovery", func() { w.setValue(xr.GetName(), "better") }, w.has(xr, "better two", "status", "value"))
	w.ready(xr)
}

// fatalRuns counts the runs that ended FATAL, of all operators.
func (w *world) fatalRuns() float64 {
	w.t.Helper()
	return w.runsThat("fatal")
}

// runsThat counts the runs that came to something, of all operators.
func (w *world) runsThat(result string) float64 {
	w.t.Helper()
	return w.counted("crosswatch_reconciles_total", map[string]string{"result": result})
}

// toldOnceEach fails unless so many objects have an event whose note has the words,
// and each of them one, but for so many in all that may have been sent again.
func (w *world) toldOnceEach(many, again int, words string) {
	w.t.Helper()
	told := map[string]int{}
	for _, e := range w.events() {
		if strings.Contains(e.Note, words) {
			told[e.Regarding.Name]++
		}
	}
	if len(told) != many {
		w.t.Errorf("%d objects have events with %q, want %d", len(told), words, many)
	}
	for name, n := range told {
		if again -= n - 1; n > 1 && again < 0 {
			w.t.Errorf("%d events of %s have %q", n, name, words)
		}
	}
}

// endFatally waits until so many runs ended FATAL.
func (w *world) endFatally(runs float64) {
	w.t.Helper()
	w.eventually("runs to be FATAL", func() (bool, string) {
		n := w.fatalRuns()
		return n >= runs, fmt.Sprint(n)
	})
}

// wakeOneAfterTheOther creates what each XR lacks, and fails unless they show that
// soon, by their 99th percentile. It returns how much longer everything may take on
// this machine than on a quiet one.
func (c *crowd) wakeOneAfterTheOther() (slack int) {
	c.w.t.Helper()
	seen := newShown(c.w)
	seen.follow(c.kind)
	effects, creations := make([]time.Duration, c.many), make([]time.Duration, c.many)
	for i := range c.many {
		cm := c.w.configMap(c.xr(i).GetName(), nil, map[string]string{"value": "good"})
		effects[i], creations[i] = seen.takes(cm.Name, "good one", func() { c.w.must(c.w.admin.Create(c.w.t.Context(), cm)) })
	}
	slices.Sort(effects)
	slices.Sort(creations)
	effect, creation := percentile(effects, 99), percentile(creations, 99)
	c.w.t.Logf("woken by a creation: p50 %s p99 %s; the creations: p50 %s p99 %s", percentile(effects, 50), effect, percentile(creations, 50), creation)
	slack = 1
	if creation > unhurried {
		slack = busy
	}
	if most := time.Duration(slack) * soon; effect > most {
		c.w.t.Errorf("99 in 100 XRs are woken within %s, want %s at most", effect, most)
	}
	return slack
}

// wakeAllAtOnce changes what all XRs require, and fails unless each reconciles
// in time.
func (c *crowd) wakeAllAtOnce(server *functions.Server, most time.Duration) {
	c.w.t.Helper()
	c.w.settled(server.TotalCalls)
	// The function's server sees each XR's reconcile by itself; asking the API
	// server meanwhile would slow down what is measured.
	saw := make(chan string, 10*c.many)
	server.Handle(func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		if found, _ := respond.Required(req, common); value(found) == "two" {
			saw <- functions.XR(req).Name
		}
		return strict(req)
	})
	changed := time.Now()
	c.w.setValue(common, "two")
	took := map[string]time.Duration{}
	for len(took) < c.many {
		select {
		case name := <-saw:
			if _, again := took[name]; !again {
				took[name] = time.Since(changed)
			}
		case <-time.After(patience):
			c.w.t.Fatalf("only %d of %d XRs reconciled", len(took), c.many)
		}
	}
	slowest := slices.Max(slices.Collect(maps.Values(took)))
	c.w.t.Logf("the last of %d XRs reconciled after %s", c.many, slowest.Round(time.Millisecond))
	if slowest > most {
		c.w.t.Errorf("that is more than %s", most)
	}
}
