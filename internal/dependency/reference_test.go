// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestReferenceMatches(t *testing.T) {
	named := func(namespace, name string) Reference {
		return Reference{GVK: clusters, Namespace: namespace, Name: name}
	}
	labelled := func(namespace string, labels map[string]string) Reference {
		return Reference{GVK: clusters, Namespace: namespace, Labels: labels}
	}
	ready := map[string]string{"ready": "true"}

	cases := map[string]struct {
		reason string
		ref    Reference
		kind   schema.GroupVersionKind
		obj    metav1.Object
		want   bool
	}{
		"NameAndNamespace": {
			reason: "a name reference matches the object it names",
			ref:    named("a", "x"), kind: clusters, obj: object("a", "x", nil), want: true,
		},
		"OtherName": {
			reason: "another object of the namespace is not the one named",
			ref:    named("a", "x"), kind: clusters, obj: object("a", "y", nil),
		},
		"OtherNamespace": {
			reason: "an object of the same name elsewhere is not the one named",
			ref:    named("a", "x"), kind: clusters, obj: object("b", "x", nil),
		},
		"ClusterScopedByName": {
			reason: "an empty namespace addresses a cluster-scoped object",
			ref:    named("", "x"), kind: clusters, obj: object("", "x", nil), want: true,
		},
		"EmptyNamespaceIsNoWildcard": {
			reason: "an empty namespace does not match a namespaced object",
			ref:    named("", "x"), kind: clusters, obj: object("a", "x", nil),
		},
		"NamespaceOfClusterScoped": {
			reason: "a reference with a namespace does not match a cluster-scoped object",
			ref:    named("a", "x"), kind: clusters, obj: object("", "x", nil),
		},
		"OtherKind": {
			reason: "a reference is to one kind",
			ref:    named("a", "x"), kind: replicas, obj: object("a", "x", nil),
		},
		"OtherVersion": {
			reason: "versions of a kind are watched, and so referred to, one by one",
			ref:    named("a", "x"),
			kind:   schema.GroupVersionKind{Group: clusters.Group, Version: "v2", Kind: clusters.Kind},
			obj:    object("a", "x", nil),
		},
		"LabelsOfNameReference": {
			reason: "labels don't count where there is a name",
			ref:    Reference{GVK: clusters, Namespace: "a", Name: "x", Labels: ready},
			kind:   clusters, obj: object("a", "x", nil), want: true,
		},
		"Labels": {
			reason: "an object that carries the labels matches, whatever else it carries",
			ref:    labelled("a", ready), kind: clusters,
			obj: object("a", "y", map[string]string{"ready": "true", "zone": "1"}), want: true,
		},
		"LabelsInEveryNamespace": {
			reason: "a label reference without a namespace matches in every namespace",
			ref:    labelled("", ready), kind: clusters, obj: object("b", "y", ready), want: true,
		},
		"LabelsClusterScoped": {
			reason: "a label reference without a namespace matches cluster-scoped objects",
			ref:    labelled("", ready), kind: clusters, obj: object("", "y", ready), want: true,
		},
		"LabelsInOtherNamespace": {
			reason: "a label reference with a namespace matches only there",
			ref:    labelled("a", ready), kind: clusters, obj: object("b", "y", ready),
		},
		"LabelsInNamespaceClusterScoped": {
			reason: "a label reference with a namespace does not match cluster-scoped objects",
			ref:    labelled("a", ready), kind: clusters, obj: object("", "y", ready),
		},
		"OtherValue": {
			reason: "a label with another value does not match",
			ref:    labelled("", ready), kind: clusters, obj: object("", "y", map[string]string{"ready": "false"}),
		},
		"SomeOfTheLabels": {
			reason: "all labels must be there, not only some",
			ref:    labelled("", map[string]string{"ready": "true", "zone": "1"}),
			kind:   clusters, obj: object("", "y", ready),
		},
		"EmptyValue": {
			reason: "a label with an empty value is a label",
			ref:    labelled("", map[string]string{"ready": ""}),
			kind:   clusters, obj: object("", "y", map[string]string{"ready": ""}), want: true,
		},
		"EmptyValueMissing": {
			reason: "a label that is not there is not one with an empty value",
			ref:    labelled("", map[string]string{"ready": "true", "zone": ""}),
			kind:   clusters, obj: object("", "y", ready),
		},
		"Everything": {
			reason: "without name and labels everything of the kind matches",
			ref:    labelled("", nil), kind: clusters, obj: object("b", "y", ready), want: true,
		},
		"EverythingClusterScoped": {
			reason: "everything includes cluster-scoped objects",
			ref:    labelled("", map[string]string{}), kind: clusters, obj: object("", "y", nil), want: true,
		},
		"EverythingInNamespace": {
			reason: "with a namespace, everything there matches",
			ref:    labelled("a", nil), kind: clusters, obj: object("a", "y", nil), want: true,
		},
		"EverythingInOtherNamespace": {
			reason: "with a namespace, nothing elsewhere matches",
			ref:    labelled("a", nil), kind: clusters, obj: object("b", "y", nil),
		},
		"EverythingOfOtherKind": {
			reason: "everything is everything of one kind",
			ref:    labelled("", nil), kind: replicas, obj: object("", "y", nil),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr := XR{Namespace: "apps", Name: "one"}
			for _, as := range []string{"composed", "required"} {
				tracker := NewTracker()
				if as == "composed" {
					tracker.Depend(xr, tc.ref)
				} else {
					tracker.Require(xr, Requirement{Reference: tc.ref})
				}
				got := len(tracker.Dependants(nil, tc.kind, tc.obj)) == 1
				same(t, as+": "+tc.reason, tc.want, got)
			}
		})
	}
}

// An event carries the old and the new object, and either may be the one that a
// reference matches.
func TestDependantsOfOldAndNew(t *testing.T) {
	waiting := XR{Namespace: "apps", Name: "waiting"} // requires ready=true
	holding := XR{Namespace: "apps", Name: "holding"} // requires ready=false
	tracker := NewTracker()
	tracker.Track(waiting, nil, []Requirement{{Reference: Reference{GVK: clusters, Labels: map[string]string{"ready": "true"}}}})
	tracker.Track(holding, nil, []Requirement{{Reference: Reference{GVK: clusters, Labels: map[string]string{"ready": "false"}}}})

	before := object("", "c", map[string]string{"ready": "false"})
	after := object("", "c", map[string]string{"ready": "true"})
	same(t, "the object before the change", []XR{holding}, tracker.Dependants(nil, clusters, before))
	same(t, "the object after the change", []XR{waiting}, tracker.Dependants(nil, clusters, after))
	same(t, "without the label", 0, len(tracker.Dependants(nil, clusters, object("", "c", nil))))
}

func TestReferenceString(t *testing.T) {
	cases := map[string]struct {
		ref  Reference
		want string
	}{
		"Named":         {Reference{GVK: secrets, Namespace: "a", Name: "x"}, `v1 Secret "a/x"`},
		"ClusterScoped": {Reference{GVK: clusters, Name: "x"}, `example.org/v1 Cluster "x"`},
		"Labels": {
			Reference{GVK: clusters, Namespace: "a", Labels: map[string]string{"z": "1", "b": ""}},
			`example.org/v1 Cluster with labels "b"="","z"="1" in namespace "a"`,
		},
		"Everything": {Reference{GVK: clusters}, `all of example.org/v1 Cluster`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "String()", tc.want, tc.ref.String())
		})
	}
}

func TestSource(t *testing.T) {
	cases := map[Source]struct {
		name   string
		seeded bool
	}{
		Resources:      {"Resources", true},
		ExtraResources: {"ExtraResources", true},
		Schema:         {"Schema", true},
		Bootstrap:      {"Bootstrap", false},
		Credential:     {"Credential", false},
		Connection:     {"Connection", false},
		Shown:          {"Shown", false},
		Shown + 1:      {"Source(7)", false},
	}
	for source, want := range cases {
		t.Run(want.name, func(t *testing.T) {
			same(t, "String()", want.name, source.String())
			same(t, "Seeded()", want.seeded, source.Seeded())
		})
	}
}
