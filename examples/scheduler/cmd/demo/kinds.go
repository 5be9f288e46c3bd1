// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	example      = schema.GroupVersion{Group: "inference.example.org", Version: "v1alpha1"}
	clusters     = example.WithResource("inferenceclusters")
	deployments  = example.WithResource("modeldeployments")
	replicas     = example.WithResource("modelreplicas")
	definitions  = schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1", Resource: "compositeresourcedefinitions"}
	watchStatus  = schema.GroupVersionResource{Group: "crosswatch.io", Version: "v1alpha1", Resource: "dependencywatchstatuses"}
	xrdName      = "modeldeployments.inference.example.org"
	readyLabel   = "ready"
	conditionsOf = []string{"Synced", "Ready", "Scheduled"}
)

// established is an XRD that the operator has taken into service.
func established(resource schema.GroupVersionResource, name string) sight {
	return sight{
		resource: resource, name: name, what: fmt.Sprintf("%s %q to be Established", resource.Resource, name),
		seen: func(u *unstructured.Unstructured) bool { return condition(u, "Established") == "True" },
	}
}

// placed is a replica that is on a cluster; on none if the cluster is "".
func placed(namespace, name, cluster string) sight {
	what := fmt.Sprintf("replica %s/%s to be on cluster %q", namespace, name, cluster)
	if cluster == "" {
		what = fmt.Sprintf("replica %s/%s to wait for a cluster", namespace, name)
	}
	return sight{
		resource: replicas, namespace: namespace, name: name, what: what,
		seen: func(u *unstructured.Unstructured) bool {
			on, _, err := unstructured.NestedString(u.Object, "spec", "clusterName")
			return err == nil && on == cluster
		},
	}
}

// counted is a deployment whose status says how many replicas are scheduled and
// how many are not.
func counted(namespace, name string, scheduled, unschedulable int64) sight {
	return sight{
		resource: deployments, namespace: namespace, name: name,
		what: fmt.Sprintf("deployment %s/%s to have %d replicas scheduled and %d unschedulable", namespace, name, scheduled, unschedulable),
		seen: func(u *unstructured.Unstructured) bool {
			yes, found, _ := unstructured.NestedInt64(u.Object, "status", "scheduled")
			no, _, _ := unstructured.NestedInt64(u.Object, "status", "unschedulable")
			return found && yes == scheduled && no == unschedulable
		},
	}
}

// healthy is a deployment with nothing to complain about.
func healthy(namespace, name string) sight {
	return sight{
		resource: deployments, namespace: namespace, name: name,
		what: fmt.Sprintf("deployment %s/%s to be %v", namespace, name, conditionsOf),
		seen: func(u *unstructured.Unstructured) bool {
			for _, kind := range conditionsOf {
				if condition(u, kind) != "True" {
					return false
				}
			}
			return true
		},
	}
}

// tracking is a DependencyWatchStatus that knows the dependencies of all XRs.
func tracking(name string, composites int64) sight {
	return sight{
		resource: watchStatus, name: name,
		what: fmt.Sprintf("DependencyWatchStatus %q to have converged with %d composites tracked", name, composites),
		seen: func(u *unstructured.Unstructured) bool {
			tracked, _, _ := unstructured.NestedInt64(u.Object, "status", "composites", "tracked")
			return tracked == composites && condition(u, "Converged") == "True"
		},
	}
}

// condition is the status of one of an object's conditions, or "" if it has none
// of that type.
func condition(u *unstructured.Unstructured, kind string) string {
	for _, c := range conditions(u) {
		if c["type"] == kind {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}

// complaintsOf are an object's conditions that are not true, in words.
func complaintsOf(u *unstructured.Unstructured) string {
	var text strings.Builder
	for _, c := range conditions(u) {
		if c["status"] != "True" {
			fmt.Fprintf(&text, "; condition %v is %v: %v: %v", c["type"], c["status"], c["reason"], c["message"])
		}
	}
	return text.String()
}

func conditions(u *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var all []map[string]any
	for _, c := range list {
		if fields, ok := c.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}
