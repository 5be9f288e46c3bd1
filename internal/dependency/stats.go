// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stats counts what a Tracker holds, runs in progress included. A reference
// counts once for each XR that holds it as composed, and once for each XR that
// holds it as required, however many of that XR's requirements name it. So
// References is Composed and Required together, and also ByName and ByLabels
// together, and also the sum over Kinds.
type Stats struct {
	// XRs that have a record.
	XRs int

	References int
	Composed   int
	Required   int
	ByName     int
	// ByLabels includes the references that match everything of a kind.
	ByLabels int

	// Kinds that are referred to, the one with the most references first, equals
	// by group, version and kind.
	Kinds []KindStats
}

// KindStats counts the references to one kind.
type KindStats struct {
	GVK        schema.GroupVersionKind
	References int
	// Dependants are the XRs that hold any of the references.
	Dependants int
}

// Stats returns the present counts. Its cost grows with the number of kinds, not
// with that of references or XRs.
func (t *Tracker) Stats() Stats {
	s := t.countsAndKinds()
	slices.SortFunc(s.Kinds, func(a, b KindStats) int {
		return cmp.Or(cmp.Compare(b.References, a.References), compareGVKs(a.GVK, b.GVK))
	})
	return s
}

func (t *Tracker) countsAndKinds() Stats {
	t.mu.RLock()
	defer t.mu.RUnlock()

	c := t.index.counts
	s := Stats{
		XRs:        len(t.records),
		References: c.byRole[composed] + c.byRole[required],
		Composed:   c.byRole[composed],
		Required:   c.byRole[required],
		ByName:     c.byName,
		ByLabels:   c.byLabels,
		Kinds:      make([]KindStats, 0, len(t.index.kinds)),
	}
	for gvk, k := range t.index.kinds {
		s.Kinds = append(s.Kinds, KindStats{GVK: gvk, References: k.references, Dependants: len(k.holders)})
	}
	return s
}

// counts are the totals over all kinds, kept with each hold and release.
type counts struct {
	byRole           [roles]int
	byName, byLabels int
}

func (c *counts) add(e *entry, as role, n int) {
	c.byRole[as] += n
	if e.byName() {
		c.byName += n
		return
	}
	c.byLabels += n
}

func compareGVKs(a, b schema.GroupVersionKind) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group),
		strings.Compare(a.Version, b.Version),
		strings.Compare(a.Kind, b.Kind),
	)
}
