// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

const (
	apiVersion           = "inference.example.org/v1alpha1"
	kindInferenceCluster = "InferenceCluster"
	kindModelReplica     = "ModelReplica"

	// labelReady with the value "true" is on clusters that take replicas.
	labelReady = "ready"
)

// modelDeployment is what the scheduler reads of the composite resource.
type modelDeployment struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Replicas       int   `json:"replicas"`
		GPUsPerReplica int64 `json:"gpusPerReplica"`
	} `json:"spec"`
}

// inferenceCluster is what the scheduler reads of a cluster.
type inferenceCluster struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		GPUs int64 `json:"gpus"`
	} `json:"spec"`
}

// modelReplica is what the scheduler reads of a replica.
type modelReplica struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		GPUs        int64  `json:"gpus"`
		ClusterName string `json:"clusterName"`
	} `json:"spec"`
}

// read makes a typed object of a resource.
func read[T any](r *fnv1.Resource) (T, error) {
	var typed T
	data, err := r.GetResource().MarshalJSON()
	if err != nil {
		return typed, fmt.Errorf("encode: %w", err)
	}
	if err := json.Unmarshal(data, &typed); err != nil {
		return typed, fmt.Errorf("decode: %w", err)
	}
	return typed, nil
}

// readAll makes typed objects of resources, in their order.
func readAll[T any](resources []*fnv1.Resource) ([]T, error) {
	all := make([]T, 0, len(resources))
	for i, r := range resources {
		typed, err := read[T](r)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		all = append(all, typed)
	}
	return all, nil
}
