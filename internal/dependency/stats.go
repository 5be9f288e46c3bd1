// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"cmp"
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

	// Bytes is an estimate of what the tracker takes of the heap.
	Bytes int

	// Kinds that are referred to, in no particular order.
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
// with that of references or XRs, and it holds readers' lock only to copy them.
func (t *Tracker) Stats() Stats {
	kinds := make([]KindStats, 0, t.countKinds())

	t.mu.RLock()
	defer t.mu.RUnlock()
	c := t.index.counts
	return Stats{
		XRs:        t.records.table.held,
		References: c.byRole[composed] + c.byRole[required],
		Composed:   c.byRole[composed],
		Required:   c.byRole[required],
		ByName:     c.byName,
		ByLabels:   c.byLabels,
		Bytes:      t.bytesLocked(),
		Kinds:      append(kinds, t.index.kinds.stats...),
	}
}

func (t *Tracker) countKinds() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.index.kinds.stats)
}

// counts are the totals over all kinds, kept with each link.
type counts struct {
	byRole           [roles]int
	byName, byLabels int
}

func (c *counts) add(key entryKey, as role, n int) {
	c.byRole[as] += n
	if key.term.byName() {
		c.byName += n
		return
	}
	c.byLabels += n
}

// CompareGVKs orders kinds by group, version and kind.
func CompareGVKs(a, b schema.GroupVersionKind) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group),
		strings.Compare(a.Version, b.Version),
		strings.Compare(a.Kind, b.Kind),
	)
}
