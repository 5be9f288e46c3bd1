// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// maxObject is what an object may take: far less than the 1.5 MiB that etcd takes.
const maxObject = 100 << 10

var (
	roomKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Room"}
	doorKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Door"}
	podKind  = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	lampKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Lamp"}

	operator = v1alpha1.OperatorInfo{Version: "v1.2.3", Leader: "crosswatch-0_1"}

	// Two XRs depend on doors, which can't be watched, on lamps, whose watch is not in service yet, and on pods.
	rooms = Facts{
		XRD: "rooms.example.org", Kind: roomKind, Synced: true, Known: 3, Settled: 3,
		Stats: dependency.Stats{
			XRs: 2, References: 9, Composed: 4, Required: 5, ByName: 6, ByLabels: 3, Bytes: 5000,
			Kinds: []dependency.KindStats{
				{GVK: lampKind, References: 2, Dependants: 2},
				{GVK: doorKind, References: 5, Dependants: 2},
				{GVK: podKind, References: 2, Dependants: 1},
			},
		},
	}
	watches = []engine.WatchInfo{
		{GVK: podKind, State: engine.Active, Store: store.Full, Objects: 12, Controllers: 1},
		{GVK: doorKind, State: engine.Forbidden, Message: "not allowed", Controllers: 2},
		{GVK: roomKind, State: engine.Active, Store: store.Full, Objects: 3, Controllers: 1},
	}
	notWatchedMessage = `not watched: kind "Door" of example.org/v1 (Forbidden: not allowed); kind "Lamp" of example.org/v1 (no watch is in service yet)`
)

func viewOf(watches []engine.WatchInfo, facts ...Facts) view {
	return view{facts: facts, watches: watches, byKind: byKindOf(watches)}
}

func conditions(c ...commonv1.Condition) commonv1.ConditionedStatus {
	return commonv1.ConditionedStatus{Conditions: c}
}

func TestStatusOf(t *testing.T) {
	want := v1alpha1.DependencyWatchStatusStatus{
		ConditionedStatus: conditions(
			commonv1.True(commonv1.TypeConverged, commonv1.ReasonTracked),
			commonv1.False(commonv1.TypeWatching, commonv1.ReasonWatchesFailed, notWatchedMessage),
		),
		CompositeType: &v1.TypeReference{APIVersion: "example.org/v1", Kind: "Room"},
		Composites:    v1alpha1.CompositeCounts{Known: 3, Tracked: 2},
		References:    v1alpha1.ReferenceCounts{Total: 9, Composed: 4, Required: 5, ByName: 6, ByLabels: 3},
		Watches:       v1alpha1.WatchCounts{Wanted: 3, Active: 1, Failed: 1},
		Kinds: []v1alpha1.KindStatus{
			{APIVersion: "example.org/v1", Kind: "Door", References: 5, Dependants: 2, Watch: v1alpha1.WatchForbidden, Message: "not allowed"},
			{APIVersion: "v1", Kind: "Pod", References: 2, Dependants: 1, Watch: v1alpha1.WatchActive, Store: "Full", Objects: 12},
			{APIVersion: "example.org/v1", Kind: "Lamp", References: 2, Dependants: 2},
		},
	}
	if diff := cmp.Diff(want, statusOf(rooms, byKindOf(watches))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatusOfAnXRDThatIsNotEstablished(t *testing.T) {
	const why = `XRD "rooms.example.org" is not established: there is no schema`
	want := v1alpha1.DependencyWatchStatusStatus{
		ConditionedStatus: conditions(
			commonv1.False(commonv1.TypeConverged, commonv1.ReasonNotEstablished, why),
			commonv1.False(commonv1.TypeWatching, commonv1.ReasonNotEstablished, `not watched: kind "Room" of example.org/v1 (`+why+`)`),
		),
		CompositeType: &v1.TypeReference{APIVersion: "example.org/v1", Kind: "Room"},
		Kinds:         []v1alpha1.KindStatus{},
	}
	got := statusOf(Facts{XRD: "rooms.example.org", Kind: roomKind, Down: "there is no schema", Vacant: true}, nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClusterStatusOf(t *testing.T) {
	houses := Facts{
		XRD: "houses.example.org", Kind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "House"},
		Synced: true, Known: 1, Settled: 1,
		Stats: dependency.Stats{
			XRs: 1, References: 8, Composed: 8, ByName: 8, Bytes: 4000,
			Kinds: []dependency.KindStats{{GVK: podKind, References: 7, Dependants: 1}, {GVK: roomKind, References: 1, Dependants: 1}},
		},
	}
	all := append(slices.Clone(watches), engine.WatchInfo{GVK: houses.Kind, State: engine.Active, Store: store.Full, Objects: 1})
	want := v1alpha1.DependencyWatchStatusStatus{
		ConditionedStatus: conditions(
			commonv1.True(commonv1.TypeConverged, commonv1.ReasonTracked),
			commonv1.False(commonv1.TypeWatching, commonv1.ReasonWatchesFailed, notWatchedMessage),
		),
		Composites: v1alpha1.CompositeCounts{Known: 4, Tracked: 3},
		References: v1alpha1.ReferenceCounts{Total: 17, Composed: 12, Required: 5, ByName: 14, ByLabels: 3},
		Watches:    v1alpha1.WatchCounts{Wanted: 4, Active: 2, Failed: 1},
		Kinds: []v1alpha1.KindStatus{
			{APIVersion: "v1", Kind: "Pod", References: 9, Dependants: 2, Watch: v1alpha1.WatchActive, Store: "Full", Objects: 12},
			{APIVersion: "example.org/v1", Kind: "Door", References: 5, Dependants: 2, Watch: v1alpha1.WatchForbidden, Message: "not allowed"},
			{APIVersion: "example.org/v1", Kind: "Lamp", References: 2, Dependants: 2},
			{APIVersion: "example.org/v1", Kind: "Room", References: 1, Dependants: 1, Watch: v1alpha1.WatchActive, Store: "Full", Objects: 3},
		},
		SharedWatches: []v1alpha1.SharedWatch{
			{APIVersion: "example.org/v1", Kind: "Door", State: v1alpha1.WatchForbidden, Controllers: 2, Message: "not allowed"},
			{APIVersion: "v1", Kind: "Pod", State: v1alpha1.WatchActive, Objects: 12, Controllers: 1},
			{APIVersion: "example.org/v1", Kind: "Room", State: v1alpha1.WatchActive, Objects: 3, Controllers: 1},
			{APIVersion: "example.org/v1", Kind: "House", State: v1alpha1.WatchActive, Objects: 1},
		},
		Objects:      16,
		TrackerBytes: 8 << 10, // of 9000
		Operator:     &operator,
	}
	if diff := cmp.Diff(want, clusterStatusOf(viewOf(all, houses, rooms), operator)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One XRD with a typing error is no reason to doubt all others.
func TestAnXRDThatCanHaveNoXRsDoesNotCountForAll(t *testing.T) {
	vacant := Facts{XRD: "halls.example.org", Kind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Hall"}, Down: "no", Vacant: true}
	stalled := vacant
	stalled.Vacant = false
	for name, tc := range map[string]struct {
		facts Facts
		want  corev1.ConditionStatus
	}{
		"Vacant":  {vacant, corev1.ConditionTrue},
		"Stalled": {stalled, corev1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			status := clusterStatusOf(viewOf(nil, tc.facts), operator)
			for _, condition := range []string{commonv1.TypeConverged, commonv1.TypeWatching} {
				if got := status.GetCondition(condition).Status; got != tc.want {
					t.Errorf("%s is %s, want %s", condition, got, tc.want)
				}
			}
			own := statusOf(tc.facts, nil)
			if got := own.GetCondition(commonv1.TypeWatching).Status; got != corev1.ConditionFalse {
				t.Errorf("its own object says that Watching is %s", got)
			}
		})
	}
}

func TestWatching(t *testing.T) {
	active := engine.WatchInfo{GVK: roomKind, State: engine.Active}
	kinds := func(gvks ...schema.GroupVersionKind) Facts {
		f := Facts{XRD: "rooms.example.org", Kind: roomKind, Synced: true}
		for _, gvk := range gvks {
			f.Stats.Kinds = append(f.Stats.Kinds, dependency.KindStats{GVK: gvk, References: 1, Dependants: 1})
		}
		return f
	}
	watch := func(gvk schema.GroupVersionKind, state engine.State, message string) engine.WatchInfo {
		return engine.WatchInfo{GVK: gvk, State: state, Message: message}
	}
	var many []schema.GroupVersionKind
	var manyWatches []engine.WatchInfo
	for _, kind := range []string{"F", "C", "B", "E", "A", "D"} {
		gvk := schema.GroupVersionKind{Version: "v1", Kind: kind}
		many = append(many, gvk)
		manyWatches = append(manyWatches, watch(gvk, engine.NotFound, "no such kind"))
	}
	cases := map[string]struct {
		facts   Facts
		watches []engine.WatchInfo
		want    commonv1.Condition
	}{
		"Nothing": {
			facts: kinds(), watches: []engine.WatchInfo{active},
			want: commonv1.True(commonv1.TypeWatching, commonv1.ReasonWatchesActive),
		},
		"All": {
			facts: kinds(podKind), watches: []engine.WatchInfo{active, watch(podKind, engine.Active, "")},
			want: commonv1.True(commonv1.TypeWatching, commonv1.ReasonWatchesActive),
		},
		"Starting": {
			facts: kinds(podKind), watches: []engine.WatchInfo{active, watch(podKind, engine.Starting, "the first list is not complete yet")},
			want: commonv1.False(commonv1.TypeWatching, commonv1.ReasonWaitingForWatch,
				`not watched: kind "Pod" of v1 (Starting: the first list is not complete yet)`),
		},
		"OwnKind": {
			facts: kinds(), watches: []engine.WatchInfo{watch(roomKind, engine.Forbidden, "not allowed")},
			want: commonv1.False(commonv1.TypeWatching, commonv1.ReasonWatchesFailed,
				`not watched: kind "Room" of example.org/v1 (Forbidden: not allowed)`),
		},
		"OwnKindOfNoController": {
			facts: kinds(),
			want: commonv1.False(commonv1.TypeWatching, commonv1.ReasonWaitingForWatch,
				`not watched: kind "Room" of example.org/v1 (no watch is in service yet)`),
		},
		"OwnKindIsReferredTo": {
			facts: kinds(roomKind), watches: []engine.WatchInfo{watch(roomKind, engine.Failed, "no answer")},
			want: commonv1.False(commonv1.TypeWatching, commonv1.ReasonWatchesFailed,
				`not watched: kind "Room" of example.org/v1 (Failed: no answer)`),
		},
		"WorstFirst": {
			facts:   kinds(doorKind, lampKind),
			watches: []engine.WatchInfo{active, watch(doorKind, engine.Starting, "soon"), watch(lampKind, engine.Unwatchable, "never")},
			want: commonv1.False(commonv1.TypeWatching, commonv1.ReasonWatchesFailed,
				`not watched: kind "Lamp" of example.org/v1 (Unwatchable: never); kind "Door" of example.org/v1 (Starting: soon)`),
		},
		"Many": {
			facts: kinds(many...), watches: append(manyWatches, active),
			want: commonv1.False(commonv1.TypeWatching, commonv1.ReasonWatchesFailed,
				`not watched: kind "A" of v1 (NotFound: no such kind); kind "B" of v1 (NotFound: no such kind); `+
					`kind "C" of v1 (NotFound: no such kind); kind "D" of v1 (NotFound: no such kind); `+
					`kind "E" of v1 (NotFound: no such kind); and others`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := statusOf(tc.facts, byKindOf(tc.watches))
			if diff := cmp.Diff(tc.want, status.GetCondition(commonv1.TypeWatching)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Of more kinds than are listed, those with most references are, equals in the order of their names, however they come.
func TestKindsAreLimited(t *testing.T) {
	const total = 250
	facts := Facts{Kind: roomKind}
	var many []engine.WatchInfo
	var want []string
	for i := range total {
		gvk := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: fmt.Sprintf("Kind%03d", i)}
		facts.Stats.Kinds = append(facts.Stats.Kinds, dependency.KindStats{GVK: gvk, References: 1 + i%2, Dependants: 1})
		many = append(many, engine.WatchInfo{GVK: gvk, State: engine.Active})
		if i%2 == 1 && len(want) < maxListed {
			want = append(want, gvk.Kind)
		}
	}
	shuffle := rand.New(rand.NewPCG(1, 2)).Shuffle
	shuffle(total, func(i, j int) {
		facts.Stats.Kinds[i], facts.Stats.Kinds[j] = facts.Stats.Kinds[j], facts.Stats.Kinds[i]
	})

	status := clusterStatusOf(viewOf(many, facts), operator)
	var got []string
	for _, k := range status.Kinds {
		got = append(got, k.Kind)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed kinds (-want +got):\n%s", diff)
	}
	if status.KindsOmitted != total-maxListed || len(status.SharedWatches) != maxShared || status.SharedWatchesOmitted != total-maxShared {
		t.Errorf("want what is omitted to be counted, got %d kinds omitted, %d watches, %d watches omitted",
			status.KindsOmitted, len(status.SharedWatches), status.SharedWatchesOmitted)
	}
	if status.Watches.Wanted != total || status.Watches.Active != total {
		t.Errorf("want all %d watches counted, got %+v", total, status.Watches)
	}
}

// However many kinds there are, and whatever texts come with them, an object lists a part of them and stays small.
func TestObjectsStaySmall(t *testing.T) {
	const many = 10_000
	for name, text := range map[string]string{
		"Plain":      strings.Repeat("The API server did not answer. ", 12),
		"Quotes":     strings.Repeat(`"`, 200),
		"Markup":     strings.Repeat("<&>", 80),
		"Controls":   strings.Repeat("\x00\n", 100),
		"Multibyte":  strings.Repeat("дверь€🚪", 25),
		"NotUnicode": strings.Repeat("\xff", 400),
	} {
		t.Run(name, func(t *testing.T) {
			facts := Facts{XRD: "rooms.example.org", Kind: roomKind, Known: many, Stats: dependency.Stats{XRs: many, References: many}}
			watches := make([]engine.WatchInfo, many)
			for i := range watches {
				gvk := schema.GroupVersionKind{Group: text, Version: fmt.Sprintf("v%d", i), Kind: text}
				watches[i] = engine.WatchInfo{
					GVK: gvk, State: engine.Unwatchable, Store: "OnDemand", Objects: 1e9, Controllers: 1e6, Message: text,
				}
				facts.Stats.Kinds = append(facts.Stats.Kinds, dependency.KindStats{GVK: gvk, References: 1e9, Dependants: 1e9})
			}
			for of, status := range map[string]v1alpha1.DependencyWatchStatusStatus{
				"one controller": statusOf(facts, byKindOf(watches)),
				"all":            clusterStatusOf(viewOf(watches, facts), operator),
			} {
				if len(status.Kinds) != maxListed {
					t.Errorf("of %s: want %d kinds, got %d", of, maxListed, len(status.Kinds))
				}
				size := sizeOf(t, status)
				t.Logf("of %s: %.1f KiB", of, float64(size)/1024)
				if size >= maxObject {
					t.Errorf("of %s: want less than %d bytes, got %d", of, maxObject, size)
				}
			}
		})
	}
}

func TestRounded(t *testing.T) {
	for bytes, want := range map[int]int{
		0: 0, 2047: 0, 2048: 4096, 5000: 4096, 100_000: 98_304, 131_071: 131_072, 131_072: 131_072, 135_000: 131_072, 10_000_000: 9_961_472,
	} {
		if got := rounded(bytes); got != want {
			t.Errorf("rounded(%d) = %d, want %d", bytes, got, want)
		}
	}
}
