// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	app   = XR{Namespace: "apps", Name: "app"}
	other = XR{Namespace: "apps", Name: "other"}
)

func cluster(name string) Reference {
	return Reference{GVK: clusters, Name: name}
}

func requires(name string) Requirement {
	return Requirement{Step: "one", Name: name, Reference: cluster(name)}
}

// A record is a story of runs, after which some references are live and others
// are not.
func TestRecord(t *testing.T) {
	cases := map[string]struct {
		reason string
		story  func(*Tracker)
		live   []string // of the clusters a, b, c, d
	}{
		"RunInProgress": {
			reason: "what a run recorded is live before the run ends",
			story: func(t *Tracker) {
				t.Require(app, requires("a"))
				t.Depend(app, cluster("b"))
			},
			live: []string{"a", "b"},
		},
		"RunInProgressAddsToSuccess": {
			reason: "while a run is in progress the last success holds",
			story: func(t *Tracker) {
				t.Track(app, []Reference{cluster("a")}, []Requirement{requires("b")})
				t.Require(app, requires("c"))
			},
			live: []string{"a", "b", "c"},
		},
		"TrackReplaces": {
			reason: "a success is exactly the record",
			story: func(t *Tracker) {
				t.Track(app, []Reference{cluster("a")}, []Requirement{requires("b")})
				t.Track(app, []Reference{cluster("c")}, []Requirement{requires("b")})
			},
			live: []string{"b", "c"},
		},
		"TrackDropsTheRunsExtras": {
			reason: "what a successful run recorded on the way but does not need goes",
			story: func(t *Tracker) {
				t.Require(app, requires("a"))
				t.Require(app, requires("b"))
				t.Track(app, nil, []Requirement{requires("b")})
			},
			live: []string{"b"},
		},
		"TrackOfTheUnrecorded": {
			reason: "a success need not have been recorded on the way",
			story: func(t *Tracker) {
				t.Require(app, requires("a"))
				t.Track(app, []Reference{cluster("b")}, []Requirement{requires("c")})
			},
			live: []string{"b", "c"},
		},
		"TrackOfNothing": {
			reason: "an XR may depend on nothing any more",
			story: func(t *Tracker) {
				t.Track(app, []Reference{cluster("a")}, []Requirement{requires("b")})
				t.Track(app, nil, nil)
			},
		},
		"TrackOfDuplicates": {
			reason: "duplicates count once, and go at once",
			story: func(t *Tracker) {
				t.Track(app, []Reference{cluster("a"), cluster("a")}, []Requirement{requires("a"), requires("a"), requires("b")})
				t.Track(app, nil, []Requirement{requires("b")})
			},
			live: []string{"b"},
		},
		"FailKeepsSuccessAndRun": {
			reason: "a failure forgets nothing",
			story: func(t *Tracker) {
				t.Track(app, []Reference{cluster("a")}, []Requirement{requires("b")})
				t.Require(app, requires("c"))
				t.Depend(app, cluster("d"))
				t.Fail(app)
			},
			live: []string{"a", "b", "c", "d"},
		},
		"FailWithoutSuccess": {
			reason: "an XR that never succeeded wakes when what it read changes",
			story: func(t *Tracker) {
				t.Require(app, requires("a"))
				t.Fail(app)
			},
			live: []string{"a"},
		},
		"FailDropsExtrasOfEarlierFailure": {
			reason: "a record that fails for ever does not grow for ever",
			story: func(t *Tracker) {
				t.Track(app, nil, []Requirement{requires("a")})
				t.Require(app, requires("b"))
				t.Fail(app)
				t.Require(app, requires("c"))
				t.Fail(app)
			},
			live: []string{"a", "c"},
		},
		"ExtrasLastUntilTheNextRunEnds": {
			reason: "while the next run is in progress the failed one's extras hold",
			story: func(t *Tracker) {
				t.Require(app, requires("a"))
				t.Fail(app)
				t.Require(app, requires("b"))
			},
			live: []string{"a", "b"},
		},
		"TrackDropsExtrasOfFailure": {
			reason: "a success ends what failures left",
			story: func(t *Tracker) {
				t.Require(app, requires("a"))
				t.Fail(app)
				t.Track(app, nil, []Requirement{requires("b")})
			},
			live: []string{"b"},
		},
		"FailOfTheUnknown": {
			reason: "a run that recorded nothing for an XR without a record leaves none",
			story:  func(t *Tracker) { t.Fail(app) },
		},
		"Forget": {
			reason: "nothing is left of an XR, whichever run recorded it",
			story: func(t *Tracker) {
				t.Track(app, []Reference{cluster("a")}, []Requirement{requires("b")})
				t.Require(app, requires("c"))
				t.Fail(app)
				t.Require(app, requires("d"))
				t.Forget(app)
			},
		},
		"ForgetTwice": {
			reason: "an XR without a record can be forgotten",
			story: func(t *Tracker) {
				t.Forget(app)
				t.Track(app, nil, []Requirement{requires("a")})
				t.Forget(app)
				t.Forget(app)
			},
		},
		"ForgetIsOfOneXR": {
			reason: "what another XR shares stays",
			story: func(t *Tracker) {
				t.Track(other, nil, []Requirement{requires("a")})
				t.Track(app, []Reference{cluster("a")}, []Requirement{requires("b")})
				t.Forget(app)
			},
			live: []string{"a"},
		},
		"RecordAgainAfterForget": {
			reason: "a new XR of the same name begins with nothing",
			story: func(t *Tracker) {
				t.Track(app, nil, []Requirement{requires("a")})
				t.Forget(app)
				t.Require(app, requires("b"))
			},
			live: []string{"b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker()
			tc.story(tracker)

			var live []string
			for _, name := range []string{"a", "b", "c", "d"} {
				if len(tracker.Dependants(nil, clusters, object("", name, nil))) > 0 {
					live = append(live, name)
				}
			}
			same(t, tc.reason, tc.live, live)
			same(t, "HasKind", len(tc.live) > 0, tracker.HasKind(clusters))

			tracker.Forget(app)
			tracker.Forget(other)
			nothingLeft(t, tracker)
		})
	}
}

func TestRequirements(t *testing.T) {
	ask := func(step, name string, from Source, ref Reference) Requirement {
		return Requirement{Step: step, Name: name, From: from, Reference: ref}
	}
	schemaOf := func(kind schema.GroupVersionKind) Requirement {
		r := ask("one", "schema", Schema, Reference{GVK: secrets, Name: "crd"})
		r.Subject = kind
		return r
	}

	cases := map[string]struct {
		reason string
		story  func(*Tracker)
		want   []Requirement
	}{
		"UnknownXR": {
			reason: "an XR without a record has nothing to seed",
			story:  func(*Tracker) {},
		},
		"SeededSourcesOfTheStep": {
			reason: "only what this step's function asked for is seeded, sorted by source and name",
			story: func(t *Tracker) {
				t.Track(app, []Reference{cluster("x")}, []Requirement{
					schemaOf(clusters),
					ask("one", "b", Resources, cluster("b")),
					ask("one", "a", ExtraResources, cluster("a")),
					ask("one", "a", Resources, cluster("a")),
					ask("two", "c", Resources, cluster("c")),
					ask("one", "boot", Bootstrap, cluster("d")),
					ask("one", "cred", Credential, Reference{GVK: secrets, Namespace: "a", Name: "s"}),
					ask("one", "conn", Connection, Reference{GVK: secrets, Namespace: "a", Name: "t"}),
				})
			},
			want: []Requirement{
				ask("one", "a", Resources, cluster("a")),
				ask("one", "b", Resources, cluster("b")),
				ask("one", "a", ExtraResources, cluster("a")),
				schemaOf(clusters),
			},
		},
		"LatestOfARun": {
			reason: "a name that a run asked for again has its last reference, also if that is an earlier one",
			story: func(t *Tracker) {
				t.Require(app, ask("one", "a", Resources, cluster("x")))
				t.Require(app, ask("one", "a", Resources, cluster("y")))
				t.Require(app, ask("one", "a", Resources, cluster("x")))
			},
			want: []Requirement{ask("one", "a", Resources, cluster("x"))},
		},
		"LatestOfASuccess": {
			reason: "of duplicates passed to Track the last counts",
			story: func(t *Tracker) {
				t.Track(app, nil, []Requirement{schemaOf(clusters), schemaOf(replicas)})
			},
			want: []Requirement{schemaOf(replicas)},
		},
		"FailureOverridesSuccess": {
			reason: "what a failed run asked for is newer than the last success, which keeps the rest",
			story: func(t *Tracker) {
				t.Track(app, nil, []Requirement{
					ask("one", "a", Resources, cluster("x")),
					ask("one", "b", Resources, cluster("b")),
				})
				t.Require(app, ask("one", "a", Resources, cluster("y")))
				t.Fail(app)
			},
			want: []Requirement{
				ask("one", "a", Resources, cluster("y")),
				ask("one", "b", Resources, cluster("b")),
			},
		},
		"RunOverridesFailure": {
			reason: "the run in progress is the newest",
			story: func(t *Tracker) {
				t.Require(app, ask("one", "a", Resources, cluster("x")))
				t.Fail(app)
				t.Require(app, ask("one", "a", Resources, cluster("y")))
			},
			want: []Requirement{ask("one", "a", Resources, cluster("y"))},
		},
		"SuccessOverridesFailure": {
			reason: "a success ends what earlier runs asked for",
			story: func(t *Tracker) {
				t.Require(app, ask("one", "b", Resources, cluster("y")))
				t.Fail(app)
				t.Track(app, nil, []Requirement{ask("one", "a", Resources, cluster("x"))})
			},
			want: []Requirement{ask("one", "a", Resources, cluster("x"))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker()
			tc.story(tracker)
			same(t, tc.reason, tc.want, tracker.Requirements(app, "one"))
		})
	}
}

func TestDependantsAppends(t *testing.T) {
	tracker := NewTracker()
	tracker.Track(app, []Reference{cluster("a")}, []Requirement{
		requires("a"),
		{Reference: Reference{GVK: clusters}},
		{Reference: Reference{GVK: clusters, Labels: map[string]string{"ready": "true"}}},
	})

	dst := []XR{other, app, app}
	obj := object("", "a", map[string]string{"ready": "true"})
	same(t, "an XR is appended once, whatever was there",
		[]XR{other, app, app, app}, tracker.Dependants(dst, clusters, obj))
	same(t, "the same for a kind",
		[]XR{other, app, app, app}, tracker.DependantsOfKind(dst, clusters))
}

func TestArgumentsAreCopied(t *testing.T) {
	labels := map[string]string{"ready": "true"}
	byLabels := Reference{GVK: clusters, Labels: labels}
	composes := []Reference{cluster("a")}
	asks := []Requirement{{Step: "one", Name: "ready", Reference: byLabels}}
	tracker := NewTracker()
	tracker.Track(app, composes, asks)
	tracker.Require(other, asks[0])

	labels["ready"] = "false"
	labels["more"] = "labels"
	composes[0] = cluster("b")
	asks[0] = requires("b")

	want := []Requirement{{
		Step: "one", Name: "ready",
		Reference: Reference{GVK: clusters, Labels: map[string]string{"ready": "true"}},
	}}
	got := tracker.Requirements(app, "one")
	same(t, "requirements", want, got)

	got[0].Reference.Labels["ready"] = "changed"
	same(t, "requirements after their reader changed them", want, tracker.Requirements(app, "one"))
	same(t, "dependants by label", []XR{app, other},
		sorted(tracker.Dependants(nil, clusters, object("", "x", map[string]string{"ready": "true"}))))
	same(t, "dependants by name", []XR{app}, tracker.Dependants(nil, clusters, object("", "a", nil)))
	same(t, "what was never recorded", 0, len(tracker.Dependants(nil, clusters, object("", "b", nil))))

	tracker.Forget(app)
	tracker.Forget(other)
	nothingLeft(t, tracker)
}

func TestStats(t *testing.T) {
	tracker := NewTracker()
	tracker.Track(app, []Reference{cluster("a"), {GVK: replicas, Namespace: "apps", Name: "r"}}, []Requirement{
		{Step: "one", Name: "all", Reference: Reference{GVK: replicas}},
		{Step: "two", Name: "every", Reference: Reference{GVK: replicas}},
		{Step: "two", Name: "same", Reference: cluster("a")},
	})
	tracker.Require(other, Requirement{Step: "one", Reference: Reference{GVK: replicas}})
	tracker.Track(XR{Name: "idle"}, nil, nil)

	same(t, "Stats", Stats{
		XRs: 3, References: 5, Composed: 2, Required: 3, ByName: 3, ByLabels: 2,
		Kinds: []KindStats{
			{GVK: clusters, References: 2, Dependants: 1},
			{GVK: replicas, References: 3, Dependants: 2},
		},
	}, countsOf(tracker))
}
