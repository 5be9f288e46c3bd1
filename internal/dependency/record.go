// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A record is everything one XR depends on: the forward side of the index.
type record struct {
	xr XR

	succeeded run // the last successful run
	failed    run // the run after it, if that failed
	current   run // the run in progress
}

// parts returns the record's runs from the oldest to the newest.
func (r *record) parts() [3]*run {
	return [...]*run{&r.succeeded, &r.failed, &r.current}
}

// A run is what one run of an XR recorded, in the order of recording. The same
// reference may be held several times; each time counts in the index.
type run struct {
	composed []*entry
	required []requirement
}

// A requirement is a Requirement whose reference is an entry of the index, which
// makes it small and comparable.
type requirement struct {
	step, name string
	from       Source
	subject    schema.GroupVersionKind
	entry      *entry
}

func (q requirement) exported() Requirement {
	ref := q.entry.reference
	ref.Labels = maps.Clone(ref.Labels)
	return Requirement{Step: q.step, Name: q.name, From: q.from, Reference: ref, Subject: q.subject}
}

// seeds returns the latest requirement of each source and name that the step
// recorded, of those that are seeded.
func (r *record) seeds(step string) []Requirement {
	type asked struct {
		from Source
		name string
	}
	latest := map[asked]requirement{}
	for _, part := range r.parts() {
		for _, q := range part.required {
			if q.step == step && q.from.Seeded() {
				latest[asked{q.from, q.name}] = q
			}
		}
	}

	seeds := make([]Requirement, 0, len(latest))
	for _, q := range latest {
		seeds = append(seeds, q.exported())
	}
	slices.SortFunc(seeds, func(a, b Requirement) int {
		return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Name, b.Name))
	})
	return seeds
}
