// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

const (
	conditionScheduled         = "Scheduled"
	reasonScheduled            = "AllReplicasScheduled"
	reasonInsufficientCapacity = "InsufficientCapacity"
)

// compose desires one replica for each wanted one, on the cluster that placed
// has at the same index, and the status that follows from it.
func compose(rsp *fnv1.RunFunctionResponse, v view, placed []string) error {
	scheduled := 0
	if rsp.Desired.Resources == nil {
		rsp.Desired.Resources = make(map[string]*fnv1.Resource, len(placed))
	}
	for i, cluster := range placed {
		replica, err := newReplica(v.own[i].Name, v.own[i].GPUs, cluster)
		if err != nil {
			return fmt.Errorf("compose replica %d: %w", i, err)
		}
		if cluster != "" {
			scheduled++
		}
		rsp.Desired.Resources[resourceName(i)] = replica
	}

	if err := setStatus(rsp.Desired, scheduled, len(placed)-scheduled); err != nil {
		return fmt.Errorf("set the ModelDeployment's status: %w", err)
	}
	rsp.Conditions = append(rsp.Conditions, scheduledCondition(v.deployment, scheduled))
	return nil
}

// newReplica is a replica as it is desired; ready once it has a cluster.
func newReplica(name string, gpus int64, cluster string) (*fnv1.Resource, error) {
	ready := fnv1.Ready_READY_FALSE
	spec := map[string]any{"gpus": gpus}
	if cluster != "" {
		ready = fnv1.Ready_READY_TRUE
		spec["clusterName"] = cluster
	}
	object, err := structpb.NewStruct(map[string]any{
		"apiVersion": apiVersion,
		"kind":       kindModelReplica,
		"metadata":   map[string]any{"name": name},
		"spec":       spec,
	})
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return &fnv1.Resource{Resource: object, Ready: ready}, nil
}

// setStatus sets the two counts of the composite resource's status and leaves
// what earlier steps set beside them.
func setStatus(desired *fnv1.State, scheduled, unschedulable int) error {
	status, err := structpb.NewValue(map[string]any{"scheduled": scheduled, "unschedulable": unschedulable})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if desired.Composite == nil {
		desired.Composite = &fnv1.Resource{}
	}
	if desired.Composite.Resource == nil {
		desired.Composite.Resource = &structpb.Struct{}
	}
	object := desired.Composite.Resource
	if object.Fields == nil {
		object.Fields = map[string]*structpb.Value{}
	}
	existing := object.Fields["status"].GetStructValue()
	if existing.GetFields() == nil {
		object.Fields["status"] = status
		return nil
	}
	for field, value := range status.GetStructValue().GetFields() {
		existing.Fields[field] = value
	}
	return nil
}

// scheduledCondition tells whether all replicas of a deployment have a cluster.
func scheduledCondition(d modelDeployment, scheduled int) *fnv1.Condition {
	condition := &fnv1.Condition{
		Type:   conditionScheduled,
		Status: fnv1.Status_STATUS_CONDITION_TRUE,
		Reason: reasonScheduled,
		Target: fnv1.Target_TARGET_COMPOSITE.Enum(),
	}
	if waiting := d.Spec.Replicas - scheduled; waiting > 0 {
		message := fmt.Sprintf("%d of %d replicas: no ready cluster has %d GPUs free",
			waiting, d.Spec.Replicas, d.Spec.GPUsPerReplica)
		condition.Status = fnv1.Status_STATUS_CONDITION_FALSE
		condition.Reason = reasonInsufficientCapacity
		condition.Message = &message
	}
	return condition
}

// fail makes a response one that stops the pipeline and changes nothing.
func fail(rsp *fnv1.RunFunctionResponse, err error) {
	rsp.Results = append(rsp.Results, &fnv1.Result{
		Severity: fnv1.Severity_SEVERITY_FATAL,
		Message:  err.Error(),
		Target:   fnv1.Target_TARGET_COMPOSITE.Enum(),
	})
}
