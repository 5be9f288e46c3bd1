// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// world is a set of deployments that share clusters. A deployment's replicas
// are what its index holds.
type world struct {
	clusters    []Cluster
	deployments [][]Replica
}

// drawWorld makes one in which any replica may be anywhere, also on a cluster
// that is full or that takes none.
func drawWorld(t *rapid.T) world {
	names := []string{"east", "north", "south", "west"}
	ready := rapid.IntRange(0, len(names)).Draw(t, "ready")
	w := world{}
	for _, name := range names[:ready] {
		w.clusters = append(w.clusters, Cluster{Name: name, GPUs: rapid.Int64Range(0, 12).Draw(t, "capacity")})
	}
	for d := range rapid.IntRange(1, 4).Draw(t, "deployments") {
		var replicas []Replica
		for i := range rapid.IntRange(0, 5).Draw(t, "replicas") {
			r := Replica{Namespace: fmt.Sprintf("team-%d", d), Name: fmt.Sprintf("model-%d", i)}
			r.GPUs = rapid.Int64Range(1, 5).Draw(t, "gpus")
			if rapid.Bool().Draw(t, "exists") {
				r.Created = time.Unix(rapid.Int64Range(1, 4).Draw(t, "created"), 0)
				r.Cluster = rapid.SampledFrom(append([]string{""}, names...)).Draw(t, "cluster")
			}
			replicas = append(replicas, r)
		}
		w.deployments = append(w.deployments, replicas)
	}
	return w
}

// others are the replicas of all deployments but one.
func (w world) others(deployment int) []Replica {
	var others []Replica
	for d, replicas := range w.deployments {
		if d != deployment {
			others = append(others, replicas...)
		}
	}
	return others
}

// place puts a deployment's replicas where Place wants them and reports whether
// that changed anything.
func (w world) place(deployment int, others []Replica) bool {
	own := w.deployments[deployment]
	changed := false
	for i, cluster := range Place(w.clusters, others, own) {
		changed = changed || own[i].Cluster != cluster
		own[i].Cluster = cluster
		if own[i].Created.IsZero() {
			own[i].Created = time.Unix(100, 0)
		}
	}
	return changed
}

// used sums what is on each cluster.
func used(replicas ...[]Replica) map[string]int64 {
	sums := map[string]int64{}
	for _, r := range slices.Concat(replicas...) {
		sums[r.Cluster] += r.GPUs
	}
	return sums
}

func TestPropertyPlacementIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		others, before := w.others(0), slices.Clone(w.deployments[0])
		w.place(0, others)
		after := w.deployments[0]

		sums, occupied := used(others, after), used(others, before)
		capacity := map[string]int64{}
		for _, c := range w.clusters {
			capacity[c.Name] = c.GPUs
		}
		for i, r := range after {
			if r.Cluster == "" {
				continue
			}
			gpus, ready := capacity[r.Cluster]
			if !ready {
				t.Fatalf("%s is on %q, which takes no replicas", r.Name, r.Cluster)
			}
			if moved := before[i].Cluster != r.Cluster; moved && sums[r.Cluster] > gpus {
				t.Fatalf("%s was put on %q: %d of %d GPUs used", r.Name, r.Cluster, sums[r.Cluster], gpus)
			}
		}
		for i, r := range before {
			gpus, ready := capacity[r.Cluster]
			if ready && occupied[r.Cluster] <= gpus && after[i].Cluster != r.Cluster {
				t.Fatalf("%s left %q, which takes replicas and is not overcommitted", r.Name, r.Cluster)
			}
		}
	})
}

func TestPropertyNoRoomIsLeftUnused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		others := w.others(0)
		w.place(0, others)
		sums := used(others, w.deployments[0])
		for _, r := range w.deployments[0] {
			for _, c := range w.clusters {
				if r.Cluster == "" && c.GPUs-sums[c.Name] >= r.GPUs {
					t.Fatalf("%s waits for %d GPUs, %q has %d free", r.Name, r.GPUs, c.Name, c.GPUs-sums[c.Name])
				}
			}
		}
	})
}

func TestPropertyPlacingAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		others := w.others(0)
		w.place(0, others)
		if w.place(0, others) {
			t.Fatal("the same view led to another placement")
		}
	})
}

func TestPropertyOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		others := w.others(0)
		want := Place(w.clusters, others, w.deployments[0])
		got := Place(
			rapid.Permutation(w.clusters).Draw(t, "clusters"),
			rapid.Permutation(others).Draw(t, "others"),
			w.deployments[0],
		)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("placement depends on the order of clusters or replicas: -want, +got:\n%s", diff)
		}
	})
}

// All deployments place at once from one and the same view, which is the worst
// that can happen to them, and then take turns.
func TestPropertyRacingDeploymentsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		views := make([][]Replica, len(w.deployments))
		for d := range w.deployments {
			views[d] = slices.Clone(w.others(d))
		}
		for d := range w.deployments {
			w.place(d, views[d])
		}

		turns := 0
		for changed := true; changed; turns++ {
			changed = false
			for d := range w.deployments {
				changed = w.place(d, w.others(d)) || changed
			}
			if turns > 25 {
				t.Fatal("deployments keep moving their replicas")
			}
		}
		sums := used(w.deployments...)
		for _, c := range w.clusters {
			if sums[c.Name] > c.GPUs {
				t.Fatalf("%q stays overcommitted: %d of %d GPUs used", c.Name, sums[c.Name], c.GPUs)
			}
		}
	})
}
