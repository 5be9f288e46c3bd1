// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestWhyADeploymentIsNotAvailable(t *testing.T) {
	condition := func(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	available := condition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "")
	unavailable := condition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "")
	cases := map[string]struct {
		change func(*appsv1.Deployment)
		want   string // part of it; "" if it is available
	}{
		"Available":  {change: func(*appsv1.Deployment) {}},
		"NotMadeYet": {change: func(d *appsv1.Deployment) { d.UID = "" }, want: "is being created"},
		"Deleted":    {change: func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{} }, want: "is being deleted"},
		"Changed":    {change: func(d *appsv1.Deployment) { d.Generation, d.Status.AvailableReplicas = 3, 0 }, want: "yet to see"},
		"OldOnes":    {change: func(d *appsv1.Deployment) { d.Generation, d.Status.UpdatedReplicas = 3, 0 }},
		"TooFew":     {change: func(d *appsv1.Deployment) { d.Status.Conditions[0] = unavailable }},
		"NoPods":     {change: func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }, want: "no available pod yet; see kubectl describe pods -n ns"},
		"TooLate": {change: func(d *appsv1.Deployment) {
			d.Status.AvailableReplicas = 0
			d.Status.Conditions = []appsv1.DeploymentCondition{unavailable, condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", "")}
		}, want: "did not become ready in time"},
		"Refused": {change: func(d *appsv1.Deployment) {
			d.Status.AvailableReplicas = 0
			d.Status.Conditions = []appsv1.DeploymentCondition{unavailable, condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue,
				"FailedCreate", `pods "walls-7d9f8c-x2v4k" is forbidden: exceeded quota: small`)}
		}, want: `Deployment "walls": its pods can't be created: pods is forbidden: exceeded quota: small`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "walls", UID: "uid", Generation: 2}}
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{available}}
			tc.change(d)
			got := faultOf(d)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHowManyPodsAreAvailable(t *testing.T) {
	cases := map[string]struct {
		replicas  *int32
		available int32
		want      string
	}{
		"All":  {replicas: ptr.To[int32](2), available: 2},
		"One":  {available: 1},
		"More": {replicas: ptr.To[int32](2), available: 3},
		"Some": {
			replicas: ptr.To[int32](2), available: 1,
			want: "1 of 2 pods are available; see kubectl describe pods -n ns -l pkg.crossplane.io/revision=walls",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "walls"}}
			d.Spec.Replicas, d.Status.AvailableReplicas = tc.replicas, tc.available
			if got := shortageOf(d); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMessagesAboutPodsAreTheSameForEachPod(t *testing.T) {
	for message, want := range map[string]string{
		`pods "walls-7d9f8c-x2v4k" is forbidden: exceeded quota: small`: "pods is forbidden: exceeded quota: small",
		`Pod "walls-7d9f8c-x2v4k" is invalid: spec: bad`:                "pods is invalid: spec: bad",
	} {
		if got := withoutPodName(message); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
