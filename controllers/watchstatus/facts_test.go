// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// fakeController is an XR controller that runs, with what it knows.
type fakeController struct {
	name           string
	kind           schema.GroupVersionKind
	tracker        *dependency.Tracker
	known, settled int
}

func (c fakeController) Name() string                  { return c.name }
func (c fakeController) Kind() schema.GroupVersionKind { return c.kind }
func (c fakeController) Tracker() *dependency.Tracker  { return c.tracker }
func (c fakeController) Known() (known, settled int)   { return c.known, c.settled }

// definitionsOf returns the XRDs of controllers that run.
func definitionsOf(controllers []fakeController) []*v1.CompositeResourceDefinition {
	var xrds []*v1.CompositeResourceDefinition
	for _, c := range controllers {
		xrds = append(xrds, xrdWith(c.name, commonv1.True(commonv1.TypeEstablished, commonv1.ReasonWatchingCompositeResource)))
	}
	return xrds
}

// xrdWith returns an XRD of kind Room.
func xrdWith(name string, conditions ...commonv1.Condition) *v1.CompositeResourceDefinition {
	xrd := &v1.CompositeResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)}}
	xrd.Spec.Group, xrd.Spec.Names.Kind = roomKind.Group, roomKind.Kind
	xrd.Spec.Versions = []v1.CompositeResourceDefinitionVersion{{Name: roomKind.Version, Referenceable: true}}
	xrd.Status.SetConditions(conditions...)
	return xrd
}

func noCRD(*v1.CompositeResourceDefinition) (bool, error) { return false, nil }
func aCRD(*v1.CompositeResourceDefinition) (bool, error)  { return true, nil }

func TestLook(t *testing.T) {
	tracker := dependency.NewTracker()
	tracker.Track(types.NamespacedName{Name: "kitchen"}, []dependency.Reference{{GVK: doorKind, Name: "front"}}, nil)
	running := []fakeController{{name: "rooms", kind: roomKind, tracker: tracker, known: 2, settled: 1}}
	invalid := commonv1.False(commonv1.TypeEstablished, commonv1.ReasonInvalidDefinition, "there is no schema")

	cases := map[string]struct {
		reason  string
		xrd     *v1.CompositeResourceDefinition
		watches []engine.WatchInfo
		hasCRD  func(*v1.CompositeResourceDefinition) (bool, error)
		want    Facts
	}{
		"Running": {
			xrd: xrdWith("rooms"), watches: []engine.WatchInfo{{GVK: roomKind, State: engine.Active}}, hasCRD: noCRD,
			want: Facts{XRD: "rooms", Kind: roomKind, Synced: true, Known: 2, Settled: 1, Stats: tracker.Stats()},
		},
		"RunningThoughInvalid": {
			reason: "a faulty edit does not stop the XRs that are there",
			xrd:    xrdWith("rooms", invalid), watches: []engine.WatchInfo{{GVK: roomKind, State: engine.Active}}, hasCRD: aCRD,
			want: Facts{XRD: "rooms", Kind: roomKind, Synced: true, Known: 2, Settled: 1, Stats: tracker.Stats()},
		},
		"RunningUnwatched": {
			xrd: xrdWith("rooms"), watches: []engine.WatchInfo{{GVK: roomKind, State: engine.Forbidden}}, hasCRD: aCRD,
			want: Facts{XRD: "rooms", Kind: roomKind, Known: 2, Settled: 1, Stats: tracker.Stats()},
		},
		"AboutToRun": {
			reason: "right after a start no controller runs yet",
			xrd:    xrdWith("halls", commonv1.True(commonv1.TypeEstablished, commonv1.ReasonWatchingCompositeResource)), hasCRD: noCRD,
			want: Facts{XRD: "halls", Kind: roomKind},
		},
		"New": {
			xrd: xrdWith("halls"), hasCRD: noCRD,
			want: Facts{XRD: "halls", Kind: roomKind, Down: "the operator has not come to it yet", Vacant: true},
		},
		"Invalid": {
			xrd: xrdWith("halls", invalid), hasCRD: noCRD,
			want: Facts{XRD: "halls", Kind: roomKind, Down: "there is no schema", Vacant: true},
		},
		"InvalidWithCRD": {
			reason: "before a faulty edit its XRs could be created",
			xrd:    xrdWith("halls", invalid), hasCRD: aCRD,
			want: Facts{XRD: "halls", Kind: roomKind, Down: "there is no schema"},
		},
		"Terminating": {
			xrd:    xrdWith("halls", commonv1.False(commonv1.TypeEstablished, commonv1.ReasonTerminatingCompositeResource, "")),
			hasCRD: noCRD,
			want:   Facts{XRD: "halls", Kind: roomKind, Down: commonv1.ReasonTerminatingCompositeResource, Vacant: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inService := func() []engine.WatchInfo { return tc.watches }
			got, err := look([]*v1.CompositeResourceDefinition{tc.xrd}, running, inService, tc.hasCRD)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Facts{tc.want}, got.facts); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A look at everything takes a moment, in which references, watches and XRs are added. The order of the look must leave no gap.
func TestLookLeavesNoGap(t *testing.T) {
	tracker := dependency.NewTracker()
	c := &growingController{fakeController: fakeController{name: "rooms", kind: roomKind, tracker: tracker}}
	inService := func() []engine.WatchInfo {
		// Recorded after the tracker was read, a reference may not have its watch in what was read before.
		tracker.Track(types.NamespacedName{Name: "kitchen"}, []dependency.Reference{{GVK: doorKind, Name: "front"}}, nil)
		c.watched = true
		return []engine.WatchInfo{{GVK: roomKind, State: engine.Active}}
	}
	seen, err := look([]*v1.CompositeResourceDefinition{xrdWith("rooms")}, []*growingController{c}, inService, noCRD)
	if err != nil {
		t.Fatal(err)
	}
	if got := seen.facts[0]; got.Stats.References != 0 || got.Known != 1 || got.isConverged() {
		t.Errorf("want no reference without its watch, and the XR of the watch that is active, got %+v", got)
	}
}

// growingController knows of an XR once its watch is active.
type growingController struct {
	fakeController
	watched bool
}

func (c *growingController) Known() (known, settled int) {
	if !c.watched {
		return 0, 0
	}
	return 1, 0
}

func TestLookNeedsToKnowOfCRDs(t *testing.T) {
	fault := errors.New("no CRDs today")
	_, err := look([]*v1.CompositeResourceDefinition{xrdWith("rooms")}, []fakeController{}, func() []engine.WatchInfo { return nil },
		func(*v1.CompositeResourceDefinition) (bool, error) { return false, fault })
	if !errors.Is(err, fault) {
		t.Errorf("want %v, got %v", fault, err)
	}
}

func TestConverged(t *testing.T) {
	facts := func(name string, synced bool, known, settled int) Facts {
		return Facts{XRD: name, Synced: synced, Known: known, Settled: settled}
	}
	down := Facts{XRD: "d", Down: "there is no schema"}
	vacant := Facts{XRD: "v", Down: "there is no schema", Vacant: true}
	cases := map[string]struct {
		facts   []Facts
		want    corev1.ConditionStatus
		mention string
	}{
		"Nothing":  {want: corev1.ConditionTrue},
		"NoXRs":    {facts: []Facts{facts("a", true, 0, 0)}, want: corev1.ConditionTrue},
		"Settled":  {facts: []Facts{facts("a", true, 2, 2)}, want: corev1.ConditionTrue},
		"Starting": {facts: []Facts{facts("a", false, 0, 0)}, want: corev1.ConditionFalse, mention: `"a"`},
		"Behind":   {facts: []Facts{facts("a", true, 2, 2), facts("b", true, 2, 1)}, want: corev1.ConditionFalse, mention: `"b"`},
		"Down":     {facts: []Facts{facts("a", true, 2, 2), down}, want: corev1.ConditionFalse, mention: `"d"`},
		"Vacant":   {facts: []Facts{facts("a", true, 2, 2), vacant}, want: corev1.ConditionTrue},
		"Many": {
			facts: []Facts{
				facts("a", false, 0, 0), facts("b", false, 0, 0), facts("c", false, 0, 0),
				facts("d", false, 0, 0), facts("e", false, 0, 0), facts("f", false, 0, 0),
			},
			want: corev1.ConditionFalse, mention: `"a", "b", "c", "d", "e" and others`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clusterConvergedOf(tc.facts)
			if got.Status != tc.want || !strings.Contains(got.Message, tc.mention) {
				t.Errorf("want %s with %q, got %s with %q", tc.want, tc.mention, got.Status, got.Message)
			}
		})
	}

	want := commonv1.False(commonv1.TypeConverged, commonv1.ReasonNotEstablished, `XRD "v" is not established: there is no schema`)
	if diff := cmp.Diff(want, convergedOf(vacant)); diff != "" {
		t.Errorf("of an XRD that has no XR controller (-want +got):\n%s", diff)
	}
}
