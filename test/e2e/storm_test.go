// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// storm is one object that many XRs depend on, changed as fast as the API server takes
// it, while XRs that have nothing to do with it are looked at.
type storm struct {
	*world

	dependants int
	unrelated  []string // of the dependants' kind, and as many of another; and what they require
	samples    int      // of the latency of unrelated XRs, before and during the storm

	functions *functions.Server
	inFlight  inFlight
	shown     *shown
}

// inFlight are the calls of a function in progress.
type inFlight struct {
	mu    sync.Mutex
	calls map[types.NamespacedName]int // by XR, of any kind: their names differ
	most  int                          // that one XR had at once
}

func (r *inFlight) call(xr types.NamespacedName, call func()) {
	r.count(xr, 1)
	defer r.count(xr, -1)
	call()
}

func (r *inFlight) count(xr types.NamespacedName, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[xr] += more
	r.most = max(r.most, r.calls[xr])
}

func (r *inFlight) highest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

// newStorm makes all the XRs and waits until they have settled.
func newStorm(t *testing.T, dependants, unrelated, samples int) *storm {
	t.Helper()
	s := &storm{
		world: newWorld(t), dependants: dependants, samples: samples,
		inFlight: inFlight{calls: map[types.NamespacedName]int{}},
	}
	s.shown = newShown(s.world)
	s.operate()
	s.functions = s.function("show", func(req *fnv1.RunFunctionRequest) (rsp *fnv1.RunFunctionResponse, err error) {
		s.inFlight.call(functions.XR(req), func() { rsp = show(req) })
		return rsp, nil
	})
	same, another := s.shared(sample), s.shared(bystander)
	s.compose(same, step("show", nil))
	s.compose(another, step("show", nil))
	for i := range unrelated {
		s.unrelated = append(s.unrelated, "same-"+strconv.Itoa(dependants+i), "another-"+strconv.Itoa(i))
	}
	for _, name := range append([]string{hot}, s.unrelated...) {
		s.setValue(name, "0")
	}
	crowds := []*crowd{
		s.crowd(same, "same", dependants+unrelated, func(i int) map[string]any {
			if i < dependants {
				return map[string]any{"settings": hot}
			}
			return map[string]any{"settings": "same-" + strconv.Itoa(i), "show": true}
		}),
		s.crowd(another, "another", unrelated, func(i int) map[string]any {
			return map[string]any{"settings": "another-" + strconv.Itoa(i), "show": true}
		}),
	}
	for _, c := range crowds {
		c.ready()
		s.shown.follow(c.kind)
	}
	s.settled(s.functions.TotalCalls)
	return s
}

// hot is the object that changes.
const hot = "hot"

// show requires the ConfigMap that spec.settings names, and has the XR's status show its
// value if spec.show says so.
func show(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	rsp := respond.To(req)
	respond.Ready(rsp, fnv1.Ready_READY_TRUE)
	spec, _ := respond.Observed(req)["spec"].(map[string]any)
	name, _ := spec["settings"].(string)
	respond.Require(rsp, "settings", settings(functions.XR(req).Namespace, name))
	if found, asked := respond.Required(req, "settings"); asked && spec["show"] == true {
		respond.Status(rsp, map[string]any{"value": value(found)})
	}
	return rsp
}

// latencies changes what one unrelated XR after the other requires, and returns how long
// each took to show it, by kind, sorted.
func (s *storm) latencies(round string) map[string][]time.Duration {
	s.t.Helper()
	took := map[string][]time.Duration{}
	for i := range s.samples {
		name := s.unrelated[i%len(s.unrelated)]
		next := round + "-" + strconv.Itoa(i)
		kind, _, _ := strings.Cut(name, "-")
		effect, _ := s.shown.takes(name, next, func() { s.setValue(name, next) })
		took[kind] = append(took[kind], effect)
	}
	for _, all := range took {
		slices.Sort(all)
	}
	return took
}

// blow changes the hot object until it is told to stop, and returns how often it did.
func (s *storm) blow() (stop func() int) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	changes := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			n++
			s.setValue(hot, strconv.Itoa(n))
		}
		changes <- n
	}()
	return func() int {
		cancel()
		return <-changes
	}
}

// rates are what the operator did in a time.
type rates struct {
	since                            time.Time
	reconciles, calls, api, enqueued float64
}

func (s *storm) rates() rates {
	return rates{
		since:      time.Now(),
		reconciles: s.counted("crosswatch_reconciles_total", nil),
		calls:      s.counted("crosswatch_function_calls_total", nil),
		api:        s.counted("crosswatch_api_requests_total", map[string]string{"!reason": "lease"}),
		enqueued:   s.counted("crosswatch_events_enqueued_total", nil),
	}
}

// per second since then.
func (s *storm) perSecond(then rates) rates {
	now := s.rates()
	per := now.since.Sub(then.since).Seconds()
	return rates{
		reconciles: (now.reconciles - then.reconciles) / per,
		calls:      (now.calls - then.calls) / per,
		api:        (now.api - then.api) / per,
		enqueued:   (now.enqueued - then.enqueued) / per,
	}
}

func (r rates) String() string {
	return fmt.Sprintf("woken %.0f/s, reconciles %.0f/s, function calls %.0f/s, API requests %.0f/s", r.enqueued, r.reconciles, r.calls, r.api)
}

// pending watches how many XRs of the kind wait to be reconciled, until it is told to
// stop, and returns the most.
func (s *storm) pending(kind string) (stop func() float64) {
	s.t.Helper()
	labels := map[string]string{"name": strings.ToLower(kind) + "s." + group}
	ctx, cancel := context.WithCancel(s.t.Context())
	most := make(chan float64)
	go func() {
		highest := 0.0
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			highest = max(highest, s.counted("workqueue_depth", labels))
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
		most <- highest
	}()
	return func() float64 {
		cancel()
		return <-most
	}
}

// saw says whether the last call for each dependant was about the hot object as it is.
func (s *storm) saw(last string) (bool, string) {
	for i := range s.dependants {
		calls := s.functions.Requests(types.NamespacedName{Namespace: s.namespace, Name: "same-" + strconv.Itoa(i)})
		seen := "nothing"
		if len(calls) > 0 {
			found, _ := respond.Required(calls[len(calls)-1], "settings")
			seen = value(found)
		}
		if seen != last {
			return false, fmt.Sprintf("same-%d last saw %s", i, seen)
		}
	}
	return true, ""
}

// quietest is the least that counts as the latency of a quiet system: what is below it
// is the API server's, and says little about the operator.
const quietest = 20 * time.Millisecond

// However often an object changes that many XRs depend on, the others are served: those
// that have waited the longest go first, and each XR waits once, and runs once at a time.
func TestSoakStorm(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("set SOAK, or run make test-soak")
	}
	const dependants, unrelated, samples = 1000, 50, 500
	s := newStorm(t, dependants, unrelated, samples)
	quiet := s.latencies("quiet")

	before, start := s.rates(), time.Now()
	stopPending, stop := s.pending(sample), s.blow()
	stormy := s.latencies("stormy")
	during := s.perSecond(before)
	changes, pending, atOnce, took := stop(), stopPending(), s.inFlight.highest(), time.Since(start)

	t.Logf("%d dependants, %d changes in %s: %.0f/s", dependants, changes, took.Round(time.Millisecond), float64(changes)/took.Seconds())
	t.Logf("meanwhile %s; %.0f XRs waiting at most, %d calls for one at once", during, pending, atOnce)
	s.compare(quiet, stormy)
	if atOnce != 1 {
		t.Errorf("an XR ran %d times at once", atOnce)
	}
	// The gauge has a series for each priority, which are not read in one moment.
	if most := 1.2 * float64(dependants+unrelated); pending > most {
		t.Errorf("%.0f of %d XRs were waiting", pending, dependants+unrelated)
	}
	if during.calls > 1.2*during.reconciles+1 {
		t.Errorf("%.0f function calls/s for %.0f reconciles/s", during.calls, during.reconciles)
	}
	if per := float64(samples) / took.Seconds(); during.api > 6*per+1 {
		t.Errorf("%.0f API requests/s where %.0f XRs/s had anything to write", during.api, per)
	}
	s.eventually("every dependant to see the last change", func() (bool, string) { return s.saw(strconv.Itoa(changes)) })
}

// compare fails if the storm slows unrelated XRs too much: to more than five times
// their 99th percentile, or those of the storm's own kind, which are in one queue with
// it, more than others.
func (s *storm) compare(quiet, stormy map[string][]time.Duration) {
	s.t.Helper()
	const percent, ratio = 99, 5
	for kind := range quiet {
		s.t.Logf("XRs of %s kind: quiet p50 %s p99 %s, during the storm p50 %s p99 %s", kind,
			percentile(quiet[kind], 50), percentile(quiet[kind], 99), percentile(stormy[kind], 50), percentile(stormy[kind], 99))
		most, got := time.Duration(ratio)*max(percentile(quiet[kind], percent), quietest), percentile(stormy[kind], percent)
		if got > most {
			s.t.Errorf("XRs of %s kind: p%d is %s during the storm, want %s at most", kind, percent, got, most)
		}
	}
	if same, another := percentile(stormy["same"], 50), percentile(stormy["another"], 50); same > 4*another {
		s.t.Errorf("an XR of the storm's kind takes %s, one of another %s", same, another)
	}
}
