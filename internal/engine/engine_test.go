// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

var (
	someXR  = types.NamespacedName{Namespace: "default", Name: "some"}
	otherXR = types.NamespacedName{Namespace: "default", Name: "other"}
	marker  = types.NamespacedName{Namespace: "default", Name: "marker"}
)

func TestAnXRWakesWhenWhatItRequiresChanges(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", secrets)

	blue := dependency.Reference{GVK: configMaps, Namespace: ns, Labels: map[string]string{"color": "blue"}}
	informer, err := c.Require(t.Context(), someXR, requires(blue))
	must(t, err)
	if got := informer.List(ns, blue.Labels); len(got) != 0 {
		t.Fatalf("got %d objects before there is one", len(got))
	}
	w.ranBefore(c, marker)

	obj := w.create(configMaps, ns, "a", map[string]string{"color": "blue"})
	w.expect(someXR)
	if informer.Get(ns, "a") == nil {
		t.Error("the XR was woken before its informer had the object")
	}

	obj.SetLabels(map[string]string{"color": "red"})
	must(t, w.client.Update(t.Context(), obj))
	w.expect(someXR)

	obj.SetLabels(map[string]string{"color": "green"})
	must(t, w.client.Update(t.Context(), obj))
	w.eventually(func() bool { return informer.Get(ns, "a").GetLabels()["color"] == "green" },
		func() string { return "the informer never saw the object turn green" })
	if ran := w.ranBefore(c, marker); slices.Contains(ran, someXR) {
		t.Error("the XR was woken by an object that matched neither before nor after")
	}
}

func TestASweepStopsWhatNothingRefersToAndNothingElse(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", secrets)
	_, err := c.Require(t.Context(), someXR, requires(named(configMaps, ns, "a")))
	must(t, err)

	w.engine.Sweep()
	w.state(configMaps, engine.Active)

	c.Forget(someXR)
	w.engine.Sweep()
	w.state(configMaps, "")
	w.state(secrets, engine.Active)
}

// Case A1: an XR kind without any XR is watched for as long as its controller
// runs, however many sweeps pass.
func TestA1TheFirstXRRunsAfterAnyNumberOfSweeps(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	w.start("xrs", configMaps)
	w.state(configMaps, engine.Active)
	for range 10 {
		w.engine.Sweep()
	}
	w.create(configMaps, ns, "first", nil)
	w.expect(types.NamespacedName{Namespace: ns, Name: "first"})
}

func TestAKindThatIsNotServedIsNamedAndWakesItsXRsOnceItIs(t *testing.T) {
	w := newWorld(t, admin)
	c := w.start("xrs", secrets)
	widgets := kindOf(define("Widget", apiextensionsv1.ClusterScoped), "v1")

	_, err := c.Require(t.Context(), someXR, requires(named(widgets, "", "a")))
	var watchErr *engine.WatchError
	if !errors.As(err, &watchErr) || watchErr.State != engine.NotFound || watchErr.GVK != widgets {
		t.Fatalf("got %v, want a WatchError that says NotFound", err)
	}
	_, again := c.Require(t.Context(), someXR, requires(named(widgets, "", "a")))
	if again == nil || again.Error() != err.Error() {
		t.Errorf("the error changes from run to run: %v, then %v", err, again)
	}
	c.Fail(someXR)
	w.ranBefore(c, marker)

	crd := w.install("Widget", apiextensionsv1.ClusterScoped, "v1")
	w.expect(someXR)
	w.state(widgets, engine.Active)

	// Nothing of the kind ever existed, so that only the watch can tell.
	must(t, w.client.Delete(t.Context(), crd))
	w.expect(someXR)
	w.state(widgets, engine.NotFound)
}

func TestAControllerThatWasStoppedPutsNoWatchIntoService(t *testing.T) {
	w := newWorld(t, admin)
	c := w.start("xrs", secrets)
	w.state(secrets, engine.Active)
	w.engine.Stop("xrs")

	if _, err := c.Require(t.Context(), someXR, requires(named(configMaps, "default", "a"))); err == nil {
		t.Error("a stopped controller was given something to read from")
	}
	if got := w.engine.Watches(); len(got) != 0 {
		t.Errorf("there are watches in service: %v", got)
	}
	if c.Tracker().HasKind(configMaps) {
		t.Error("a stopped controller recorded a reference")
	}
}

func TestAnXRThatWaitsForAWatchIsNotWokenByIt(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", secrets)
	w.state(secrets, engine.Active)
	w.ranBefore(c, marker)

	// The other XR refers to the kind without waiting for its watch.
	c.Tracker().Require(otherXR, requires(named(configMaps, ns, "b")))
	_, err := c.Require(t.Context(), someXR, requires(named(configMaps, ns, "a")))
	must(t, err)
	w.expectOnly(c, otherXR, someXR)
}

// expectOnly waits until the one XR ran, and fails if the other did, too.
func (w *world) expectOnly(c *engine.Controller, want, not types.NamespacedName) {
	w.t.Helper()
	var ran []types.NamespacedName
	for !slices.Contains(ran, want) {
		ran = append(ran, w.ranBefore(c, marker)...)
	}
	if slices.Contains(ran, not) {
		w.t.Errorf("%s was woken by the watch that it waited for", not)
	}
}

// Nothing that happens after Require returned may be missed, also while sweeps
// take the very watch out of service again and again.
func TestNoChangeIsMissedWhileSweepsCrossNewReferences(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", secrets)
	w.state(secrets, engine.Active)

	stop := make(chan struct{})
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				w.engine.Sweep()
			}
		}
	})
	defer sweeping.Wait()
	defer close(stop)

	for i := range 30 {
		name := types.NamespacedName{Namespace: ns, Name: fmt.Sprintf("xr-%d", i)}
		_, err := c.Require(t.Context(), name, requires(named(configMaps, ns, name.Name)))
		var waiting *engine.WatchError
		if errors.As(err, &waiting) && waiting.Waiting() {
			w.expect(name) // the machine was too busy to sync in time: the watch wakes it
		} else {
			must(t, err)
		}
		w.create(configMaps, ns, name.Name, nil)
		w.expect(name)
		c.Forget(name)
	}
}

func TestAnEventOnAnXRWakesItOnlyIfItDiffersFromWhatItsRunStartedFrom(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	obj := w.create(configMaps, ns, "xr", map[string]string{"color": "blue"})
	c := w.start("xrs", configMaps) // wakes it once, and no event is on its way
	name := types.NamespacedName{Namespace: ns, Name: "xr"}
	w.expect(name)

	seen, fresh := c.Begin(name)
	if seen == nil || !fresh {
		t.Fatalf("got %v, fresh %v; want the XR, fresh", seen, fresh)
	}

	// Somebody else's claim of a field that has that value already changes
	// managed fields alone, which no run could see.
	before := obj.GetResourceVersion()
	claim := object(configMaps, ns, "xr")
	claim.SetLabels(map[string]string{"color": "blue"})
	must(t, w.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(claim), client.FieldOwner("someone")))
	must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	if obj.GetResourceVersion() == before {
		t.Fatal("the write changed nothing at all")
	}
	w.eventually(func() bool { return c.Informer().Get(ns, "xr").GetResourceVersion() == obj.GetResourceVersion() },
		func() string { return "the informer never saw the write" })
	if ran := w.ranBefore(c, marker); slices.Contains(ran, name) {
		t.Error("woken by a change that no run could see")
	}

	obj.SetAnnotations(map[string]string{"note": "new"})
	must(t, w.client.Update(t.Context(), obj))
	w.expect(name)
}

func TestARunDoesNotStartFromBeforeItsOwnLastWrite(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", configMaps)
	obj := w.create(configMaps, ns, "xr", nil)
	name := types.NamespacedName{Namespace: ns, Name: "xr"}
	w.expect(name)
	c.Begin(name)

	// The answer to a write of ours that no event has brought yet.
	ahead := obj.DeepCopy()
	ahead.SetResourceVersion("9" + obj.GetResourceVersion())
	c.Wrote(ahead)
	if _, fresh := c.Begin(name); fresh {
		t.Error("a run started from a state older than what the last one wrote")
	}
	obj.SetAnnotations(map[string]string{"note": "new"})
	must(t, w.client.Update(t.Context(), obj))
	w.expect(name)
}

func TestStoppingIsIdempotentAndLeavesTheTrackerForARestart(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", secrets)
	_, err := c.Require(t.Context(), someXR, requires(named(configMaps, ns, "a")))
	must(t, err)

	w.engine.Stop("xrs")
	w.engine.Stop("xrs")
	w.state(configMaps, "")
	w.state(secrets, "")

	restarted := w.start("xrs", secrets)
	if restarted.Tracker() != c.Tracker() {
		t.Error("the restart lost the tracker")
	}

	w.engine.Remove("xrs")
	if got := w.trackers.Tracker("xrs"); got == c.Tracker() {
		t.Error("the tracker outlived its removal")
	}
}

// An XRD whose version changes is reconciled by another controller.
func TestARestartForAnotherVersionKeepsWhatXRsDependOnRecordedAndWatched(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	crd := w.install("Versioned", apiextensionsv1.NamespaceScoped, "v1", "v2")
	v1, v2 := kindOf(crd, "v1"), kindOf(crd, "v2")
	c := w.start("xrs", v1)
	w.state(v1, engine.Active)
	w.createSoon(v1, ns, "some")
	name := types.NamespacedName{Namespace: ns, Name: "some"}
	w.expect(name)
	c.Begin(name)
	required := requires(named(configMaps, ns, "a"))
	informer, err := c.Require(t.Context(), name, required)
	must(t, err)
	c.Track(name, nil, []dependency.Requirement{required})

	restarted := w.start("xrs", v2)
	w.state(v1, "")
	// Nothing has run since that could have asked for it.
	w.state(configMaps, engine.Active)
	if same, err := restarted.Require(t.Context(), name, required); err != nil || same != informer {
		t.Errorf("the kind that the XR requires was watched anew (%v)", err)
	}
	w.state(v2, engine.Active)
	w.expect(name)
	if seen, fresh := restarted.Begin(name); seen == nil || !fresh || seen.GroupVersionKind() != v2 {
		t.Fatalf("got %v, fresh %v; want the XR in version v2, fresh", seen, fresh)
	}
	if got := restarted.Requirements(name, "step"); len(got) != 1 {
		t.Errorf("the first run after the restart forgot what the XR requires: %v", got)
	}
	w.ranBefore(restarted, marker)
	w.create(configMaps, ns, "a", nil)
	w.expect(name)
}

func TestAControllerOfANameThatWasRemovedStartsWithoutARecord(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", configMaps)
	w.create(configMaps, ns, "xr", nil)
	name := types.NamespacedName{Namespace: ns, Name: "xr"}
	w.expect(name)
	c.Begin(name)
	c.Track(name, nil, []dependency.Requirement{requires(named(secrets, ns, "a"))})
	leaving := w.create(configMaps, ns, "leaving", nil)
	gone := types.NamespacedName{Namespace: ns, Name: "leaving"}
	w.expect(gone)
	c.Begin(gone)
	w.engine.Remove("xrs")
	must(t, w.client.Delete(t.Context(), leaving))

	again := w.start("xrs", configMaps)
	w.expect(name)
	if ran := w.ranBefore(again, marker); slices.Contains(ran, gone) {
		t.Error("an XR is remembered that went while there was no controller of the name")
	}
	again.Begin(name)
	if got := again.Requirements(name, "step"); len(got) != 0 {
		t.Errorf("the XR has requirements from before: %v", got)
	}
	w.state(secrets, "")
}

func TestARestartRemembersWhichXRsThereWere(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", configMaps)
	stays, goes := w.create(configMaps, ns, "stays", nil), w.create(configMaps, ns, "goes", nil)
	staysName, goesName := client.ObjectKeyFromObject(stays), client.ObjectKeyFromObject(goes)
	w.expect(staysName, goesName)
	c.Begin(staysName)
	c.Begin(goesName)
	c.Track(staysName, nil, []dependency.Requirement{requires(named(secrets, ns, "a"))})
	c.Track(goesName, nil, nil)

	w.engine.Stop("xrs")
	must(t, w.client.Delete(t.Context(), goes))
	restarted := w.start("xrs", configMaps)
	w.state(configMaps, engine.Active)
	w.expect(goesName) // only its own run can find that it is gone

	if seen, fresh := restarted.Begin(staysName); seen == nil || !fresh {
		t.Fatalf("got %v, fresh %v; want the XR, fresh", seen, fresh)
	}
	if got := restarted.Requirements(staysName, "step"); len(got) != 1 {
		t.Errorf("the first run after the restart forgot what the XR requires: %v", got)
	}
}

func TestKnownCountsXRsUntilEachIsSettled(t *testing.T) {
	w := newWorld(t, admin)
	ns := w.namespace()
	c := w.start("xrs", configMaps)
	w.state(configMaps, engine.Active)
	before, _ := c.Known()

	obj := w.create(configMaps, ns, "xr", nil)
	name := types.NamespacedName{Namespace: ns, Name: "xr"}
	w.expect(name)
	c.Begin(name)
	check := func(wantKnown, wantSettled int) {
		t.Helper()
		if known, settled := c.Known(); known != wantKnown || settled != wantSettled {
			t.Errorf("got %d known, %d settled; want %d and %d", known, settled, wantKnown, wantSettled)
		}
	}
	check(before+1, 0)
	c.Fail(name)
	check(before+1, 0)
	c.Track(name, nil, nil)
	check(before+1, 1)
	c.Track(name, nil, nil)
	check(before+1, 1)

	must(t, w.client.Delete(t.Context(), obj))
	w.expect(name)
	check(before, 0)
}
