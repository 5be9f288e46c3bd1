// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// gpusPerReplica is what every replica of these tests needs.
const gpusPerReplica = 4

func resource(t *testing.T, object map[string]any) *fnv1.Resource {
	t.Helper()
	s, err := structpb.NewStruct(object)
	if err != nil {
		t.Fatal(err)
	}
	return &fnv1.Resource{Resource: s}
}

func resources(t *testing.T, objects ...map[string]any) *fnv1.Resources {
	t.Helper()
	all := &fnv1.Resources{}
	for _, object := range objects {
		all.Items = append(all.Items, resource(t, object))
	}
	return all
}

func deployment(replicas int) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": "ModelDeployment",
		"metadata": map[string]any{"namespace": "team-a", "name": "chat"},
		"spec":     map[string]any{"replicas": replicas, "gpusPerReplica": gpusPerReplica},
	}
}

func cluster(name string, gpus int) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": kindInferenceCluster,
		"metadata": map[string]any{"name": name, "labels": map[string]any{labelReady: "true"}},
		"spec":     map[string]any{"gpus": gpus},
	}
}

func replica(namespace, name, clusterName string) map[string]any {
	spec := map[string]any{"gpus": gpusPerReplica}
	if clusterName != "" {
		spec["clusterName"] = clusterName
	}
	return map[string]any{
		"apiVersion": apiVersion, "kind": kindModelReplica,
		"metadata": map[string]any{
			"namespace": namespace, "name": name, "creationTimestamp": "2030-01-01T08:00:00Z",
		},
		"spec": spec,
	}
}

// request carries what the function requires.
func request(t *testing.T, composite map[string]any, clusters, replicas *fnv1.Resources) *fnv1.RunFunctionRequest {
	t.Helper()
	return &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: "tag"},
		Observed: &fnv1.State{Composite: resource(t, composite)},
		RequiredResources: map[string]*fnv1.Resources{
			requiredClusters: clusters,
			requiredReplicas: replicas,
		},
	}
}

func run(t *testing.T, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	t.Helper()
	before := proto.CloneOf(req)
	rsp, err := Server{}.RunFunction(t.Context(), req)
	if err != nil {
		t.Fatalf("RunFunction(...): %v", err)
	}
	if diff := cmp.Diff(before, req, protocmp.Transform()); diff != "" {
		t.Errorf("RunFunction(...) changed the request: -before, +after:\n%s", diff)
	}
	return rsp
}

// summary is a response in words: where each replica is, and what it says of the whole.
type summary struct {
	Replicas  map[string]string
	Ready     map[string]bool
	Status    map[string]any
	Condition string
}

func summarize(rsp *fnv1.RunFunctionResponse) summary {
	s := summary{Replicas: map[string]string{}, Ready: map[string]bool{}}
	for name, r := range rsp.GetDesired().GetResources() {
		object := r.GetResource().AsMap()
		metadata, _ := object["metadata"].(map[string]any)
		spec, _ := object["spec"].(map[string]any)
		s.Replicas[name] = fmt.Sprintf("%v: %v GPUs on %v", metadata["name"], spec["gpus"], spec["clusterName"])
		s.Ready[name] = r.GetReady() == fnv1.Ready_READY_TRUE
	}
	s.Status, _ = rsp.GetDesired().GetComposite().GetResource().AsMap()["status"].(map[string]any)
	for _, c := range rsp.GetConditions() {
		s.Condition += fmt.Sprintf("%s %s %s %s", c.GetType(), c.GetStatus(), c.GetReason(), c.GetMessage())
	}
	return s
}

func TestRunFunction(t *testing.T) {
	cases := map[string]struct {
		reason   string
		replicas int
		observed map[string]map[string]any
		clusters []map[string]any
		all      []map[string]any
		want     summary
	}{
		"AllScheduled": {
			reason:   "replicas go where there is room",
			replicas: 2,
			clusters: []map[string]any{cluster("east", 8)},
			want: summary{
				Replicas:  map[string]string{"replica-0": "chat-0: 4 GPUs on east", "replica-1": "chat-1: 4 GPUs on east"},
				Ready:     map[string]bool{"replica-0": true, "replica-1": true},
				Status:    map[string]any{"scheduled": 2.0, "unschedulable": 0.0},
				Condition: "Scheduled STATUS_CONDITION_TRUE AllReplicasScheduled ",
			},
		},
		"OneUnschedulable": {
			reason:   "a replica that has no room is composed without a cluster, and nothing fails",
			replicas: 2,
			clusters: []map[string]any{cluster("east", 8)},
			all:      []map[string]any{replica("research", "notebook", "east")},
			want: summary{
				Replicas:  map[string]string{"replica-0": "chat-0: 4 GPUs on east", "replica-1": "chat-1: 4 GPUs on <nil>"},
				Ready:     map[string]bool{"replica-0": true, "replica-1": false},
				Status:    map[string]any{"scheduled": 1.0, "unschedulable": 1.0},
				Condition: "Scheduled STATUS_CONDITION_FALSE InsufficientCapacity 1 of 2 replicas: no ready cluster has 4 GPUs free",
			},
		},
		"NoClusterAtAll": {
			reason:   "a requirement that nothing satisfies is an answer like any other",
			replicas: 1,
			want: summary{
				Replicas:  map[string]string{"replica-0": "chat-0: 4 GPUs on <nil>"},
				Ready:     map[string]bool{"replica-0": false},
				Status:    map[string]any{"scheduled": 0.0, "unschedulable": 1.0},
				Condition: "Scheduled STATUS_CONDITION_FALSE InsufficientCapacity 1 of 1 replicas: no ready cluster has 4 GPUs free",
			},
		},
		"OwnReplicasCountOnce": {
			reason:   "the deployment's replicas are among all replicas, and must not be in their own way",
			replicas: 2,
			observed: map[string]map[string]any{
				"replica-0": replica("team-a", "chat-0", "east"),
				"replica-1": replica("team-a", "chat-1", ""),
			},
			clusters: []map[string]any{cluster("east", 8)},
			all: []map[string]any{
				replica("team-a", "chat-0", "east"),
				replica("team-a", "chat-1", ""),
			},
			want: summary{
				Replicas:  map[string]string{"replica-0": "chat-0: 4 GPUs on east", "replica-1": "chat-1: 4 GPUs on east"},
				Ready:     map[string]bool{"replica-0": true, "replica-1": true},
				Status:    map[string]any{"scheduled": 2.0, "unschedulable": 0.0},
				Condition: "Scheduled STATUS_CONDITION_TRUE AllReplicasScheduled ",
			},
		},
		"SameNameInAnotherNamespace": {
			reason:   "another deployment's replica of the same name takes capacity",
			replicas: 1,
			clusters: []map[string]any{cluster("east", 4)},
			all:      []map[string]any{replica("team-b", "chat-0", "east")},
			want: summary{
				Replicas:  map[string]string{"replica-0": "chat-0: 4 GPUs on <nil>"},
				Ready:     map[string]bool{"replica-0": false},
				Status:    map[string]any{"scheduled": 0.0, "unschedulable": 1.0},
				Condition: "Scheduled STATUS_CONDITION_FALSE InsufficientCapacity 1 of 1 replicas: no ready cluster has 4 GPUs free",
			},
		},
		"ScaledDown": {
			reason:   "a replica that is no longer wanted is left out, and its capacity is the deployment's to use",
			replicas: 1,
			observed: map[string]map[string]any{
				"replica-0": replica("team-a", "chat-0", ""),
				"replica-1": replica("team-a", "chat-1", "east"),
			},
			clusters: []map[string]any{cluster("east", 4)},
			all: []map[string]any{
				replica("team-a", "chat-0", ""),
				replica("team-a", "chat-1", "east"),
			},
			want: summary{
				Replicas:  map[string]string{"replica-0": "chat-0: 4 GPUs on east"},
				Ready:     map[string]bool{"replica-0": true},
				Status:    map[string]any{"scheduled": 1.0, "unschedulable": 0.0},
				Condition: "Scheduled STATUS_CONDITION_TRUE AllReplicasScheduled ",
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, deployment(tc.replicas), resources(t, tc.clusters...), resources(t, tc.all...))
			req.Observed.Resources = map[string]*fnv1.Resource{}
			for name, object := range tc.observed {
				req.Observed.Resources[name] = resource(t, object)
			}
			if diff := cmp.Diff(tc.want, summarize(run(t, req))); diff != "" {
				t.Errorf("%s\nRunFunction(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunFunctionAsksBeforeItPlaces(t *testing.T) {
	asked := &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
		requiredClusters: {
			ApiVersion: apiVersion, Kind: kindInferenceCluster,
			Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{
				Labels: map[string]string{labelReady: "true"},
			}},
		},
		requiredReplicas: {ApiVersion: apiVersion, Kind: kindModelReplica},
	}}
	cases := map[string]map[string]*fnv1.Resources{
		"Nothing":      nil,
		"OnlyClusters": {requiredClusters: {}},
		"OnlyReplicas": {requiredReplicas: {}},
	}
	for name, carried := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, deployment(2), nil, nil)
			req.RequiredResources = carried
			rsp := run(t, req)
			if diff := cmp.Diff(asked, rsp.GetRequirements(), protocmp.Transform()); diff != "" {
				t.Errorf("requirements: -want, +got:\n%s", diff)
			}
			if got := len(rsp.GetDesired().GetResources()) + len(rsp.GetConditions()); got != 0 {
				t.Errorf("placed %d replicas and conditions before it could know the clusters", got)
			}
		})
	}
}

func TestRunFunctionPassesOnEarlierSteps(t *testing.T) {
	req := request(t, deployment(1), resources(t, cluster("east", 8)), resources(t))
	req.Context = resource(t, map[string]any{"who": "an earlier step"}).GetResource()
	req.Desired = &fnv1.State{
		Composite: resource(t, map[string]any{"status": map[string]any{"url": "https://chat.example.org"}}),
		Resources: map[string]*fnv1.Resource{"service": resource(t, map[string]any{"kind": "Service"})},
	}
	rsp := run(t, req)

	if diff := cmp.Diff(req.GetContext(), rsp.GetContext(), protocmp.Transform()); diff != "" {
		t.Errorf("context: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(req.GetDesired().GetResources()["service"], rsp.GetDesired().GetResources()["service"], protocmp.Transform()); diff != "" {
		t.Errorf("another step's resource: -want, +got:\n%s", diff)
	}
	want := map[string]any{"url": "https://chat.example.org", "scheduled": 1.0, "unschedulable": 0.0}
	if diff := cmp.Diff(want, summarize(rsp).Status); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}
}

func TestRunFunctionUnreadable(t *testing.T) {
	broken := map[string]any{"metadata": map[string]any{"name": "east"}, "spec": map[string]any{"gpus": "many"}}
	cases := map[string]*fnv1.RunFunctionRequest{
		"Deployment": request(t, map[string]any{"spec": "none"}, resources(t), resources(t)),
		"Cluster":    request(t, deployment(1), resources(t, broken), resources(t)),
		"Replica":    request(t, deployment(1), resources(t), resources(t, broken)),
		"Composed":   request(t, deployment(1), resources(t), resources(t)),
	}
	cases["Composed"].Observed.Resources = map[string]*fnv1.Resource{"replica-0": resource(t, broken)}
	for name, req := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := run(t, req)
			if len(rsp.GetResults()) != 1 || rsp.GetResults()[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
				t.Errorf("RunFunction(...): want one fatal result, got %v", rsp.GetResults())
			}
		})
	}
}

func TestRunFunctionIsDeterministic(t *testing.T) {
	req := request(t, deployment(3),
		resources(t, cluster("east", 8), cluster("west", 8)),
		resources(t, replica("research", "notebook", "east")))
	marshal := proto.MarshalOptions{Deterministic: true}
	first, err := marshal.Marshal(run(t, req))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := marshal.Marshal(run(t, req))
		if err != nil {
			t.Fatal(err)
		}
		if string(first) != string(again) {
			t.Fatal("the same request got another response")
		}
	}
}
