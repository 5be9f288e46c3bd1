// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPlace(t *testing.T) {
	morning := time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC)
	noon := morning.Add(4 * time.Hour)

	cases := map[string]struct {
		reason   string
		clusters []Cluster
		others   []Replica
		own      []Replica
		want     []string
	}{
		"NothingWanted": {
			reason:   "a deployment of no replicas needs no cluster",
			clusters: []Cluster{{Name: "east", GPUs: 8}},
			want:     []string{},
		},
		"NoCluster": {
			reason: "without clusters nothing can be placed, which is an answer and no error",
			own:    []Replica{{Namespace: "a", Name: "chat-0", GPUs: 1}},
			want:   []string{""},
		},
		"MostFreeCapacityFirst": {
			reason:   "replicas spread to where most is free, and each placement counts for the next",
			clusters: []Cluster{{Name: "east", GPUs: 8}, {Name: "west", GPUs: 6}},
			own: []Replica{
				{Namespace: "a", Name: "chat-0", GPUs: 4},
				{Namespace: "a", Name: "chat-1", GPUs: 4},
				{Namespace: "a", Name: "chat-2", GPUs: 4},
				{Namespace: "a", Name: "chat-3", GPUs: 4},
			},
			want: []string{"east", "west", "east", ""},
		},
		"EqualClustersByName": {
			reason:   "of equals the first by name is taken, so that runs agree",
			clusters: []Cluster{{Name: "west", GPUs: 8}, {Name: "east", GPUs: 8}},
			own:      []Replica{{Namespace: "a", Name: "chat-0", GPUs: 4}},
			want:     []string{"east"},
		},
		"OthersTakeCapacity": {
			reason:   "replicas in every namespace use up a cluster",
			clusters: []Cluster{{Name: "east", GPUs: 8}},
			others:   []Replica{{Namespace: "b", Name: "notebook", GPUs: 4, Cluster: "east", Created: morning}},
			own: []Replica{
				{Namespace: "a", Name: "chat-0", GPUs: 4},
				{Namespace: "a", Name: "chat-1", GPUs: 4},
			},
			want: []string{"east", ""},
		},
		"OthersUnplacedOrElsewhere": {
			reason:   "replicas on no cluster, or on one that takes none, use up nothing here",
			clusters: []Cluster{{Name: "east", GPUs: 4}},
			others: []Replica{
				{Namespace: "b", Name: "waiting", GPUs: 4, Created: morning},
				{Namespace: "b", Name: "elsewhere", GPUs: 4, Cluster: "north", Created: morning},
			},
			own:  []Replica{{Namespace: "a", Name: "chat-0", GPUs: 4}},
			want: []string{"east"},
		},
		"PlacedStay": {
			reason:   "a replica does not move to a cluster that has become emptier than its own",
			clusters: []Cluster{{Name: "east", GPUs: 8}, {Name: "west", GPUs: 64}},
			own:      []Replica{{Namespace: "a", Name: "chat-0", GPUs: 4, Cluster: "east", Created: morning}},
			want:     []string{"east"},
		},
		"ClusterNoLongerReady": {
			reason:   "replicas of a cluster that takes none any more go elsewhere while there is room",
			clusters: []Cluster{{Name: "east", GPUs: 4}},
			own: []Replica{
				{Namespace: "a", Name: "chat-0", GPUs: 4, Cluster: "west", Created: morning},
				{Namespace: "a", Name: "chat-1", GPUs: 4, Cluster: "west", Created: morning},
			},
			want: []string{"east", ""},
		},
		"OvercommittedYoungerGives": {
			reason:   "of two that took the same capacity the younger one moves",
			clusters: []Cluster{{Name: "east", GPUs: 4}, {Name: "west", GPUs: 4}},
			others:   []Replica{{Namespace: "b", Name: "embed-0", GPUs: 4, Cluster: "east", Created: morning}},
			own:      []Replica{{Namespace: "a", Name: "chat-0", GPUs: 4, Cluster: "east", Created: noon}},
			want:     []string{"west"},
		},
		"OvercommittedOlderStays": {
			reason:   "and the older one knows that it need not",
			clusters: []Cluster{{Name: "east", GPUs: 4}, {Name: "west", GPUs: 4}},
			others:   []Replica{{Namespace: "b", Name: "embed-0", GPUs: 4, Cluster: "east", Created: noon}},
			own:      []Replica{{Namespace: "a", Name: "chat-0", GPUs: 4, Cluster: "east", Created: morning}},
			want:     []string{"east"},
		},
		"OvercommittedSameAge": {
			reason:   "timestamps have seconds, so names break the tie",
			clusters: []Cluster{{Name: "east", GPUs: 4}},
			others:   []Replica{{Namespace: "a", Name: "embed-0", GPUs: 4, Cluster: "east", Created: morning}},
			own:      []Replica{{Namespace: "a", Name: "chat-0", GPUs: 4, Cluster: "east", Created: morning}},
			want:     []string{"east"},
		},
		"OvercommittedSmallOneFits": {
			reason:   "a replica that must leave anyway is not in the way of a younger one that fits",
			clusters: []Cluster{{Name: "east", GPUs: 8}},
			others: []Replica{
				{Namespace: "b", Name: "embed-0", GPUs: 4, Cluster: "east", Created: morning},
				{Namespace: "b", Name: "embed-1", GPUs: 8, Cluster: "east", Created: morning},
			},
			own:  []Replica{{Namespace: "a", Name: "chat-0", GPUs: 4, Cluster: "east", Created: noon}},
			want: []string{"east"},
		},
		"GrownOutOfItsCluster": {
			reason:   "a replica that needs more than before leaves if that no longer fits",
			clusters: []Cluster{{Name: "east", GPUs: 4}, {Name: "west", GPUs: 8}},
			own:      []Replica{{Namespace: "a", Name: "chat-0", GPUs: 8, Cluster: "east", Created: morning}},
			want:     []string{"west"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clusters, others, own := slices.Clone(tc.clusters), slices.Clone(tc.others), slices.Clone(tc.own)
			got := Place(tc.clusters, tc.others, tc.own)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nPlace(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]any{clusters, others, own}, []any{tc.clusters, tc.others, tc.own}); diff != "" {
				t.Errorf("arguments changed: -before, +after:\n%s", diff)
			}
		})
	}
}
