// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package scheduler is a composition function that places the replicas of a
// ModelDeployment on clusters.
//
// It requires, without owning any of it, all ready clusters and all replicas in
// every namespace, and composes the deployment's replicas with the clusters that
// placement found. A replica that no cluster has room for is composed without
// one: it can be seen to wait, and is a change of one field away from running. An
// unschedulable replica is no failure: the deployment says so in its status and
// in the condition Scheduled, and is placed again as soon as a cluster or a
// replica anywhere has changed.
package scheduler

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/examples/scheduler/function/placement"
)

const (
	requiredClusters = "ready-clusters"
	requiredReplicas = "replicas"

	// ttl is long since the answer depends on nothing but the request: it can't
	// become wrong with time.
	ttl = 24 * time.Hour
)

// Server answers the calls of a composition engine. It has no state.
type Server struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

// RunFunction places the replicas of the request's ModelDeployment. It never
// returns an error: what can't be read is a fatal result.
func (Server) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := newResponse(req)
	if !carriesRequirements(req) {
		return rsp, nil
	}
	v, err := newView(req)
	if err != nil {
		fail(rsp, err)
		return rsp, nil
	}
	if err := compose(rsp, v, placement.Place(v.clusters, v.others, v.own)); err != nil {
		fail(rsp, err)
	}
	return rsp, nil
}

// newResponse is an answer that passes on what earlier steps desire and says
// what this one needs to see.
func newResponse(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	desired := &fnv1.State{}
	if req.GetDesired() != nil {
		desired = proto.CloneOf(req.GetDesired())
	}
	return &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag(), Ttl: durationpb.New(ttl)},
		Desired: desired,
		Context: req.GetContext(),
		Requirements: &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
			requiredClusters: {
				ApiVersion: apiVersion,
				Kind:       kindInferenceCluster,
				Match: &fnv1.ResourceSelector_MatchLabels{
					MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{labelReady: "true"}},
				},
			},
			requiredReplicas: {ApiVersion: apiVersion, Kind: kindModelReplica},
		}},
	}
}

// carriesRequirements reports whether the engine has read what the function
// requires. Until then there is nothing to place on, which is not the same as
// there being no cluster.
func carriesRequirements(req *fnv1.RunFunctionRequest) bool {
	_, clusters := req.GetRequiredResources()[requiredClusters]
	_, replicas := req.GetRequiredResources()[requiredReplicas]
	return clusters && replicas
}
