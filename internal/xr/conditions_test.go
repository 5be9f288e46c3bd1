// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

const conditioned = `
apiVersion: example.org/v1
kind: App
metadata: {name: app}
status:
  ready: 3
  conditions:
  - {type: Foreign, status: "False", reason: Theirs, lastTransitionTime: not a time, extra: kept}
  - {type: Synced, status: "True", reason: ReconcileSuccess, lastTransitionTime: "2024-05-06T07:08:09Z", observedGeneration: 2}
`

var (
	earlier = metav1.NewTime(time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC))
	later   = metav1.NewTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))

	synced = commonv1.Condition{
		Type: "Synced", Status: "True", Reason: "ReconcileSuccess", LastTransitionTime: later, ObservedGeneration: 2,
	}
)

func TestSetConditions(t *testing.T) {
	foreign := commonv1.Condition{Type: "Foreign", Status: "False", Reason: "Theirs"}
	was := synced
	was.LastTransitionTime = earlier
	newer := was
	newer.ObservedGeneration = 3
	failing := commonv1.Condition{
		Type: "Synced", Status: "False", Reason: "ReconcileError", Message: "no", LastTransitionTime: later, ObservedGeneration: 3,
	}
	ready := commonv1.Condition{Type: "Ready", Status: "True", Reason: "Available", LastTransitionTime: later}
	withGeneration := func(c commonv1.Condition) commonv1.Condition {
		c.LastTransitionTime = later
		return c
	}

	cases := map[string]struct {
		reason string
		set    []commonv1.Condition
		want   []commonv1.Condition
	}{
		"Nothing": {"what is there is read", nil, []commonv1.Condition{foreign, was}},
		"Same": {
			"the same condition changes nothing, not even the time",
			[]commonv1.Condition{synced}, []commonv1.Condition{foreign, was},
		},
		"NewerGeneration": {
			"another generation is no transition",
			[]commonv1.Condition{withGeneration(newer)}, []commonv1.Condition{foreign, newer},
		},
		"Transition": {
			"a condition that changed has the new time",
			[]commonv1.Condition{failing}, []commonv1.Condition{foreign, failing},
		},
		"Added": {
			"a new type goes to the end",
			[]commonv1.Condition{ready, synced}, []commonv1.Condition{foreign, was, ready},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := decode(t, conditioned)
			x := New(u, false)
			x.SetConditions(tc.set...)
			same(t, tc.reason, tc.want, x.Conditions())
			same(t, "the rest of the status", any(int64(3)), value(u.Object, "status", "ready"))
			same(t, "another's condition, as it was",
				list(decode(t, conditioned).Object, "status", "conditions")[0],
				list(u.Object, "status", "conditions")[0])
			runtime.DeepCopyJSON(u.Object)
		})
	}
}

func TestSetConditionsOfABareXR(t *testing.T) {
	x := New(decode(t, "{apiVersion: example.org/v1, kind: App, metadata: {name: app}}"), false)
	same(t, "conditions", []commonv1.Condition(nil), x.Conditions())
	x.SetConditions(synced)
	same(t, "conditions", []commonv1.Condition{synced}, x.Conditions())
}

func TestConditionsWithoutType(t *testing.T) {
	x := New(decode(t, "{apiVersion: example.org/v1, kind: App, status: {conditions: [7, {status: 'True'}]}}"), false)
	same(t, "what has no type is no condition", []commonv1.Condition(nil), x.Conditions())
	x.SetConditions(synced)
	same(t, "conditions", []commonv1.Condition{synced}, x.Conditions())
}
