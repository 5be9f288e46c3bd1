// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"regexp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/crosswatch-io/crosswatch/internal/apifault"
)

// faultOf says why nobody reaches a pod of the Deployment; "" if one is available. While pods are replaced, those before them serve.
func faultOf(d *appsv1.Deployment) string {
	switch {
	case d.UID == "":
		return "its Deployment is being created"
	case d.DeletionTimestamp != nil:
		return fmt.Sprintf("Deployment %q is being deleted", d.Name)
	case d.Status.AvailableReplicas > 0:
		return ""
	case d.Status.ObservedGeneration < d.Generation:
		return fmt.Sprintf("Deployment %q has changed, which its controller has yet to see", d.Name)
	}
	if failure := statusOf(d, appsv1.DeploymentReplicaFailure); failure.Status == corev1.ConditionTrue {
		return fmt.Sprintf("Deployment %q: its pods can't be created: %s", d.Name, withoutPodName(failure.Message))
	}
	if statusOf(d, appsv1.DeploymentProgressing).Reason == reasonDeadlineExceeded {
		return fmt.Sprintf("Deployment %q: its pods did not become ready in time; %s", d.Name, whereToLook(d))
	}
	return fmt.Sprintf("Deployment %q has no available pod yet; %s", d.Name, whereToLook(d))
}

// shortageOf says how many pods of the Deployment are available if some are missing; else "".
func shortageOf(d *appsv1.Deployment) string {
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	if d.Status.AvailableReplicas >= wanted {
		return ""
	}
	return fmt.Sprintf("%d of %d pods are available; %s", d.Status.AvailableReplicas, wanted, whereToLook(d))
}

func whereToLook(d *appsv1.Deployment) string {
	return fmt.Sprintf("see kubectl describe pods -n %s -l %s=%s", d.Namespace, labelRevision, d.Name)
}

const reasonDeadlineExceeded = "ProgressDeadlineExceeded"

// rolledOut reports whether all pods of the Deployment are those of its newest template.
func rolledOut(d *appsv1.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == s.Replicas && s.AvailableReplicas == s.Replicas && s.Replicas > 0
}

func statusOf(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return appsv1.DeploymentCondition{}
}

// podName is that of a pod which could not be created: another with each try.
var podName = regexp.MustCompile(`[Pp]ods? "[^"]*"`)

func withoutPodName(message string) string {
	return podName.ReplaceAllString(apifault.Text(textError(message)), "pods")
}

type textError string

func (e textError) Error() string { return string(e) }
