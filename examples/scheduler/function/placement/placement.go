// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package placement decides which cluster each replica of one deployment runs
// on. It is a pure function of what it is given: no client, no clock, no state,
// and an answer that depends on no order of its arguments.
//
// Several deployments are placed at the same time, each from a view of the
// replicas that may be a moment old, and none may move another's replicas. Two
// of them can therefore take the same capacity. All agree on who gives way: the
// replicas of a cluster keep their place in order of age as long as they fit.
// So every deployment comes to the same conclusion on its own, and the overlap
// is gone once each of them has been placed again.
package placement

import (
	"cmp"
	"slices"
	"time"
)

// Cluster is one that takes replicas now.
type Cluster struct {
	Name string
	// GPUs is what all its replicas together may use.
	GPUs int64
}

// Replica is one that exists, or one that is wanted and does not exist yet.
type Replica struct {
	Namespace, Name string
	// GPUs that it needs.
	GPUs int64
	// Cluster that it is placed on; empty if it is on none.
	Cluster string
	// Created is when the object came into being; zero if it has not.
	Created time.Time
}

// Place returns for each of a deployment's own replicas the cluster that it
// belongs on, or "" if no cluster has room for it. Replicas of others count
// against the clusters' capacity and stay where they are.
//
// A replica that is placed stays, unless its cluster no longer takes replicas
// or is overcommitted and older replicas fill it. The rest go, in the order
// given, to the cluster with the most free GPUs, of equals to the first by
// name. The arguments are not changed.
func Place(clusters []Cluster, others, own []Replica) []string {
	rooms := furnish(clusters, others, own)
	placed := make([]string, len(own))
	for i, r := range own {
		if room, ok := rooms[r.Cluster]; ok && room.keeps(r) {
			placed[i] = r.Cluster
			room.free -= r.GPUs
		}
	}

	for i, r := range own {
		if placed[i] != "" {
			continue
		}
		if room := roomiest(rooms, r.GPUs); room != nil {
			placed[i] = room.name
			room.free -= r.GPUs
		}
	}
	return placed
}

// room is what is known of one cluster while replicas are placed.
type room struct {
	name string
	gpus int64
	// free is what others, and those of our own that are placed so far, leave.
	// It is negative where a cluster is overcommitted.
	free int64
	// residents are all replicas that say they are here.
	residents []Replica
}

// furnish lays out the clusters with everything that is on them.
func furnish(clusters []Cluster, others, own []Replica) map[string]*room {
	rooms := make(map[string]*room, len(clusters))
	for _, c := range clusters {
		rooms[c.Name] = &room{name: c.Name, gpus: c.GPUs, free: c.GPUs}
	}
	for _, r := range others {
		if room, ok := rooms[r.Cluster]; ok {
			room.residents = append(room.residents, r)
			room.free -= r.GPUs
		}
	}
	for _, r := range own {
		if room, ok := rooms[r.Cluster]; ok {
			room.residents = append(room.residents, r)
		}
	}
	for _, room := range rooms {
		slices.SortFunc(room.residents, bySeniority)
	}
	return rooms
}

// keeps reports whether a resident keeps its place: whether it fits beside all
// older residents that keep theirs.
func (r *room) keeps(resident Replica) bool {
	var used int64
	for _, other := range r.residents {
		fits := used+other.GPUs <= r.gpus
		if bySeniority(other, resident) == 0 {
			return fits
		}
		if fits {
			used += other.GPUs
		}
	}
	return false
}

// roomiest is the cluster with the most free GPUs, or nil if none has enough.
func roomiest(rooms map[string]*room, gpus int64) *room {
	var best *room
	for _, r := range rooms {
		if r.free < gpus {
			continue
		}
		if best == nil || r.free > best.free || r.free == best.free && r.name < best.name {
			best = r
		}
	}
	return best
}

// bySeniority orders replicas by age, of equals by namespace and name. Those
// that do not exist yet come last.
func bySeniority(a, b Replica) int {
	if a.Created.IsZero() != b.Created.IsZero() {
		if a.Created.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(
		a.Created.Compare(b.Created),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}
