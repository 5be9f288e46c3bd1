// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/examples/scheduler/function/placement"
)

// view is a request in the terms of placement.
type view struct {
	deployment modelDeployment
	clusters   []placement.Cluster
	// own are the deployment's replicas as they are wanted, in order; where one
	// exists already it says where it is.
	own []placement.Replica
	// others are all replicas that are not the deployment's.
	others []placement.Replica
}

// newView reads a request that carries what the function requires.
func newView(req *fnv1.RunFunctionRequest) (view, error) {
	deployment, err := read[modelDeployment](req.GetObserved().GetComposite())
	if err != nil {
		return view{}, fmt.Errorf("read the ModelDeployment: %w", err)
	}
	clusters, err := readAll[inferenceCluster](req.GetRequiredResources()[requiredClusters].GetItems())
	if err != nil {
		return view{}, fmt.Errorf("read clusters: %w", err)
	}
	replicas, err := readAll[modelReplica](req.GetRequiredResources()[requiredReplicas].GetItems())
	if err != nil {
		return view{}, fmt.Errorf("read replicas: %w", err)
	}
	observed, err := readOwn(req)
	if err != nil {
		return view{}, fmt.Errorf("read the deployment's replicas: %w", err)
	}

	v := view{deployment: deployment, own: wanted(deployment, observed)}
	for _, c := range clusters {
		v.clusters = append(v.clusters, placement.Cluster{Name: c.Metadata.Name, GPUs: c.Spec.GPUs})
	}
	v.others = withoutOwn(replicas, v.own, observed)
	return v, nil
}

// readOwn reads the replicas that the deployment has composed, by the names they
// have in the desired state.
func readOwn(req *fnv1.RunFunctionRequest) (map[string]modelReplica, error) {
	own := make(map[string]modelReplica, len(req.GetObserved().GetResources()))
	for name, r := range req.GetObserved().GetResources() {
		replica, err := read[modelReplica](r)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		own[name] = replica
	}
	return own, nil
}

// wanted lists the replicas that a deployment should have.
func wanted(d modelDeployment, observed map[string]modelReplica) []placement.Replica {
	own := make([]placement.Replica, max(d.Spec.Replicas, 0))
	for i := range own {
		exists := observed[resourceName(i)]
		own[i] = placement.Replica{
			Namespace: d.Metadata.Namespace,
			Name:      replicaName(d, i),
			GPUs:      d.Spec.GPUsPerReplica,
			Cluster:   exists.Spec.ClusterName,
			Created:   exists.Metadata.CreationTimestamp.Time,
		}
	}
	return own
}

// withoutOwn leaves out of all replicas those that the deployment wants, and
// those that it has composed and no longer wants: their capacity is its to use.
func withoutOwn(all []modelReplica, own []placement.Replica, observed map[string]modelReplica) []placement.Replica {
	ours := make(map[types.NamespacedName]bool, len(own)+len(observed))
	for _, r := range own {
		ours[types.NamespacedName{Namespace: r.Namespace, Name: r.Name}] = true
	}
	for _, r := range observed {
		ours[types.NamespacedName{Namespace: r.Metadata.Namespace, Name: r.Metadata.Name}] = true
	}

	var others []placement.Replica
	for _, r := range all {
		if ours[types.NamespacedName{Namespace: r.Metadata.Namespace, Name: r.Metadata.Name}] {
			continue
		}
		others = append(others, placement.Replica{
			Namespace: r.Metadata.Namespace,
			Name:      r.Metadata.Name,
			GPUs:      r.Spec.GPUs,
			Cluster:   r.Spec.ClusterName,
			Created:   r.Metadata.CreationTimestamp.Time,
		})
	}
	return others
}

// resourceName is a replica's name in the desired state.
func resourceName(index int) string {
	return fmt.Sprintf("replica-%d", index)
}

// replicaName is the name of a replica's object.
func replicaName(d modelDeployment, index int) string {
	return fmt.Sprintf("%s-%d", d.Metadata.Name, index)
}
