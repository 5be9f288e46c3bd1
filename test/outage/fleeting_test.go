// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/test/faults"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

func TestM1Of500ShortLivedXRsNothingIsLeft(t *testing.T) { fleeting(t, "Fleeting", 500) }

func TestSoakM1Of10000ShortLivedXRsNothingIsLeft(t *testing.T) {
	long(t)
	fleeting(t, "Passing", 10_000)
}

// lingering is the XR whose run does not end before the test lets it.
const lingering = "lingering"

// fleet is a world of XRs that all require one object, which never rests.
type fleet struct {
	*world

	entered, leave chan struct{} // of the run of the XR that lingers
}

// fleeting makes that many XRs and deletes them again, while nobody hears of it.
func fleeting(t *testing.T, kind string, many int) {
	f := &fleet{entered: make(chan struct{}), leave: make(chan struct{})}
	f.world = newWorld(t, kind, f.handle)
	f.define()
	f.create(f.configMap("hot", nil, map[string]string{"value": "0"}))
	f.first(f.xr("resident"))
	f.counts(1)
	references, bytes, heap := f.references(), f.trackerBytes(), f.heap()

	f.heated(func() {
		f.each(many, func(name string) error { return f.admin.Create(t.Context(), f.xr(name)) })
		f.counts(1 + many)
		f.blindly(func() { f.each(many, f.vanish) })
		f.counts(1)
	})
	f.linger()

	f.server.Reset()
	f.eventually("as many references as before", func() (bool, string) {
		now := f.references()
		return now == references, fmt.Sprintf("%d references, %d before", now, references)
	})
	// The tracker keeps the room of a row for an XR, which the next one takes.
	if grown, most := f.trackerBytes()-bytes, many<<7; grown > most {
		t.Errorf("the tracker has grown by %d bytes, want at most %d", grown, most)
	}
	// An XR that something remembers takes a KiB or more. What else the process
	// does makes some difference as well.
	if grown, most := f.heap()-heap, 16<<20+many<<9; grown > most {
		t.Errorf("the heap has grown by %d bytes, want at most %d", grown, most)
	}
}

// handle shows the value of the object that never rests.
func (f *fleet) handle(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	xr := functions.XR(req)
	respond.Ready(rsp, fnv1.Ready_READY_TRUE)
	respond.Require(rsp, "hot", respond.Selector{APIVersion: "v1", Kind: "ConfigMap", Namespace: xr.Namespace, Name: "hot"})
	hot, asked := respond.Required(req, "hot")
	if asked && xr.Name == lingering {
		f.entered <- struct{}{}
		<-f.leave
	}
	respond.Status(rsp, map[string]any{"value": valueOf(hot)})
	return rsp, nil
}

func (f *fleet) xr(name string) *unstructured.Unstructured {
	xr := f.object(f.kind, name)
	xr.Object["spec"] = map[string]any{}
	return xr
}

// each does something with each of the XRs, several at a time.
func (f *fleet) each(many int, do func(name string) error) {
	f.t.Helper()
	var all errgroup.Group
	all.SetLimit(16)
	for i := range many {
		all.Go(func() error { return do("xr-" + strconv.Itoa(i)) })
	}
	f.must(all.Wait())
}

// vanish deletes an XR whose controller need not let go of it.
func (f *fleet) vanish(name string) error {
	noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := f.admin.Patch(f.t.Context(), f.xr(name), noFinalizers); err != nil {
		return err
	}
	return f.admin.Delete(f.t.Context(), f.xr(name))
}

// heated does something while the required object changes all the time.
func (f *fleet) heated(do func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	changes, done := 0, make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			hot := f.configMap("hot", nil, map[string]string{"value": strconv.Itoa(changes)})
			if err := f.admin.Update(f.t.Context(), hot); err != nil {
				done <- err
				return
			}
			changes++
			select {
			case <-time.After(3 * time.Second):
			case <-ctx.Done():
			}
		}
		done <- nil
	}()
	do()
	cancel()
	f.must(<-done)
	f.t.Logf("the required object changed %d times", changes)
}

// blindly does something while no XR is listed or watched.
func (f *fleet) blindly(do func()) {
	f.t.Helper()
	xrs := faults.All(faults.Resource(group, f.plural()), func(r faults.Request) bool { return r.Verb == "list" || r.Verb == "watch" })
	away := f.inject(faults.Fault{Status: http.StatusServiceUnavailable, On: xrs})
	cluster.proxy.Cut(faults.Abruptly, xrs)
	f.eventually("no XR to be watched", func() (bool, string) {
		n := cluster.proxy.Watching(xrs)
		return n == 0, fmt.Sprintf("%d watches", n)
	})
	do()
	away.Heal()
}

// inject lets a fault happen until it is healed, at the latest when the test ends.
func (f *fleet) inject(fault faults.Fault) *faults.Injection {
	i := cluster.proxy.Inject(fault)
	f.t.Cleanup(i.Heal)
	return i
}

func (f *fleet) plural() string { return f.name[:len(f.name)-len("."+group)] }

// linger lets a run end after its XR is known to be gone: it must not be recorded
// again.
func (f *fleet) linger() {
	f.t.Helper()
	name := types.NamespacedName{Namespace: f.namespace, Name: lingering}
	f.create(f.xr(lingering))
	<-f.entered
	f.must(f.vanish(lingering))
	f.eventually("the deletion to be known", func() (bool, string) {
		known := f.gauge("crosswatch_composites_known", "controller", f.name)
		return known == 1, strconv.Itoa(known)
	})
	close(f.leave)
	f.counts(1)
	calls := f.server.Calls(name)
	f.heated(func() {
		f.always("what is gone is neither tracked nor reconciled", time.Second, func() (bool, string) {
			tracked, again := f.gauge("crosswatch_composites_tracked", "controller", f.name), f.server.Calls(name)-calls
			return tracked == 1 && again == 0, fmt.Sprintf("%d are tracked, %d more calls", tracked, again)
		})
	})
}

func (f *fleet) references() int { return f.gauge("crosswatch_references", "controller", f.name) }

func (f *fleet) trackerBytes() int { return f.gauge("crosswatch_tracker_bytes", "controller", f.name) }

func (*fleet) heap() int {
	runtime.GC()
	runtime.GC() // the first may have had to finish another
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
