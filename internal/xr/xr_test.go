// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const modern = `
apiVersion: example.org/v1
kind: App
metadata:
  name: app
  namespace: team
  labels: {crossplane.io/composite: root}
  annotations:
    crossplane.io/paused: "true"
    crossplane.io/reconcile-requested-at: "7"
    crossplane.io/poll-interval: 5m
spec:
  size: 3
  crossplane:
    compositionRef: {name: comp}
    compositionSelector: {matchLabels: {tier: gold, zone: ""}}
    compositionRevisionRef: {name: comp-1234567}
    compositionRevisionSelector: {matchLabels: {channel: stable}}
    compositionUpdatePolicy: Manual
    resourceRefs:
    - {apiVersion: v1, kind: ConfigMap, name: a}
    - {apiVersion: v1, kind: Secret, namespace: elsewhere, name: b}
status:
  lastHandledReconcileAt: "6"
`

const legacy = `
apiVersion: example.org/v1
kind: App
metadata:
  name: app
  labels: {crossplane.io/composite: root}
  annotations:
    crossplane.io/paused: "true"
    crossplane.io/reconcile-requested-at: "7"
    crossplane.io/poll-interval: 5m
spec:
  size: 3
  compositionRef: {name: comp}
  compositionSelector: {matchLabels: {tier: gold, zone: ""}}
  compositionRevisionRef: {name: comp-1234567}
  compositionRevisionSelector: {matchLabels: {channel: stable}}
  compositionUpdatePolicy: Manual
  resourceRefs:
  - {apiVersion: v1, kind: ConfigMap, name: a}
  - {apiVersion: v1, kind: Secret, namespace: elsewhere, name: b}
status:
  lastHandledReconcileAt: "6"
`

// fields are everything that is read from an XR.
type fields struct {
	Composition, Revision, Policy     string
	CompositionLabels, RevisionLabels map[string]string
	Refs                              []Ref
	Paused                            bool
	Requested, Handled, Root          string
	Interval                          time.Duration
	HasInterval                       bool
}

func read(x XR) fields {
	interval, ok := x.PollInterval()
	return fields{
		Composition:       x.CompositionRef(),
		Revision:          x.CompositionRevisionRef(),
		Policy:            x.CompositionUpdatePolicy(),
		CompositionLabels: x.CompositionSelector(),
		RevisionLabels:    x.CompositionRevisionSelector(),
		Refs:              x.ResourceRefs(),
		Paused:            x.Paused(),
		Requested:         x.ReconcileRequestedAt(),
		Handled:           x.LastHandledReconcileAt(),
		Root:              x.CompositeLabel(),
		Interval:          interval,
		HasInterval:       ok,
	}
}

func TestRead(t *testing.T) {
	full := fields{
		Composition: "comp", Revision: "comp-1234567", Policy: "Manual",
		CompositionLabels: map[string]string{"tier": "gold", "zone": ""},
		RevisionLabels:    map[string]string{"channel": "stable"},
		Refs: []Ref{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "a"},
			{APIVersion: "v1", Kind: "Secret", Namespace: "elsewhere", Name: "b"},
		},
		Paused: true, Requested: "7", Handled: "6", Root: "root",
		Interval: 5 * time.Minute, HasInterval: true,
	}
	cases := map[string]struct {
		reason   string
		manifest string
		legacy   bool
		want     fields
	}{
		"Modern": {"the engine's fields are below spec.crossplane", modern, false, full},
		"Legacy": {"a legacy XR has them directly below spec", legacy, true, full},
		"Bare": {
			reason:   "everything may be absent; the root of an XR without label is the XR",
			manifest: "{apiVersion: example.org/v1, kind: App, metadata: {name: app}}",
			want:     fields{Root: "app"},
		},
		"OtherShapes": {
			reason: "what has the wrong shape is absent",
			manifest: `
apiVersion: example.org/v1
kind: App
metadata: {name: app, annotations: {crossplane.io/paused: "yes", crossplane.io/poll-interval: soon}}
spec: {crossplane: {compositionRef: comp, compositionSelector: [], resourceRefs: [1, {kind: 2}], compositionUpdatePolicy: 3}}
status: []
`,
			want: fields{Root: "app", Refs: []Ref{{}}},
		},
		"NoInterval": {
			reason:   "an interval that isn't positive is none",
			manifest: `{apiVersion: example.org/v1, kind: App, metadata: {name: app, annotations: {crossplane.io/poll-interval: 0s}}}`,
			want:     fields{Root: "app"},
		},
		"EmptySelector": {
			reason:   "a selector without labels is a selector",
			manifest: `{apiVersion: example.org/v1, kind: App, metadata: {name: app}, spec: {crossplane: {compositionSelector: {matchLabels: {}}}}}`,
			want:     fields{Root: "app", CompositionLabels: map[string]string{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.reason, tc.want, read(New(decode(t, tc.manifest), tc.legacy)))
		})
	}
}

func setEverything(x XR) {
	x.SetCompositionRef("other")
	x.SetCompositionRevisionRef("other-7654321")
	x.SetResourceRefs([]Ref{
		{APIVersion: "v1", Kind: "Secret", Namespace: "b", Name: "z"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "z"},
		{APIVersion: "apps/v1", Kind: "Deployment"},
	})
	x.SetLastHandledReconcileAt("7")
}

func TestSet(t *testing.T) {
	for name, tc := range map[string]struct {
		manifest string
		legacy   bool
		path     []string
	}{
		"Modern": {modern, false, []string{"spec", "crossplane"}},
		"Legacy": {legacy, true, []string{"spec"}},
		"Bare":   {"{apiVersion: example.org/v1, kind: App, metadata: {name: app}}", false, []string{"spec", "crossplane"}},
	} {
		t.Run(name, func(t *testing.T) {
			u := decode(t, tc.manifest)
			x := New(u, tc.legacy)
			setEverything(x)

			same(t, "composition", "other", x.CompositionRef())
			same(t, "revision", "other-7654321", x.CompositionRevisionRef())
			same(t, "acknowledged", "7", x.LastHandledReconcileAt())
			same(t, "references, sorted", []Ref{
				{APIVersion: "apps/v1", Kind: "Deployment"},
				{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "z"},
				{APIVersion: "v1", Kind: "Secret", Namespace: "b", Name: "z"},
			}, x.ResourceRefs())
			same(t, "a reference without namespace and name has no such fields",
				any(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}),
				list(u.Object, append(tc.path, "resourceRefs")...)[0])
			// DeepCopyJSON panics on what JSON can't hold.
			runtime.DeepCopyJSON(u.Object)

			x.SetCompositionRef("")
			x.SetCompositionRevisionRef("")
			x.SetResourceRefs(nil)
			x.SetLastHandledReconcileAt("")
			for _, field := range []string{"compositionRef", "compositionRevisionRef", "resourceRefs"} {
				same(t, field+" after its removal", nil, value(u.Object, append(tc.path, field)...))
			}
			same(t, "acknowledged after its removal", "", x.LastHandledReconcileAt())
		})
	}
}

func TestSetKeepsTheRest(t *testing.T) {
	u := decode(t, modern)
	setEverything(New(u, false))
	same(t, "the user's field", any(int64(3)), value(u.Object, "spec", "size"))
	same(t, "the engine's other field", "Manual", New(u, false).CompositionUpdatePolicy())
}

// Whoever shares maps with the XR's object keeps what it has.
func TestSettersReplaceSharedMaps(t *testing.T) {
	for name, tc := range map[string]struct {
		manifest string
		legacy   bool
	}{"Modern": {modern, false}, "Legacy": {legacy, true}} {
		t.Run(name, func(t *testing.T) {
			shared := decode(t, tc.manifest)
			before := shared.DeepCopy()
			x := New(&unstructured.Unstructured{Object: shared.Object}, tc.legacy)
			setEverything(x)
			x.SetConditions(synced)
			x.SetCompositionRef("")
			same(t, "the object whose maps were shared", before.Object, shared.Object)
		})
	}
}

func TestSetResourceRefsKeepsItsArgument(t *testing.T) {
	refs := []Ref{{Kind: "B"}, {Kind: "A"}}
	New(decode(t, modern), false).SetResourceRefs(refs)
	same(t, "argument", []Ref{{Kind: "B"}, {Kind: "A"}}, refs)
}
