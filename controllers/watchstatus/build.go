// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// maxListed is how many kinds an object lists, and maxShared how many shared watches: with thousands of them it stays small.
const (
	maxListed = 100
	maxShared = 50
)

// watchesByKind are the watches in service.
type watchesByKind map[schema.GroupVersionKind]*engine.WatchInfo

func byKindOf(watches []engine.WatchInfo) watchesByKind {
	byKind := make(watchesByKind, len(watches))
	for i := range watches {
		byKind[watches[i].GVK] = &watches[i]
	}
	return byKind
}

func (b watchesByKind) isActive(gvk schema.GroupVersionKind) bool {
	w := b[gvk]
	return w != nil && w.State == engine.Active
}

// statusOf returns the status of one XR controller. Its conditions are not dated, and it has no time.
func statusOf(f Facts, byKind watchesByKind) v1alpha1.DependencyWatchStatusStatus {
	all := []Facts{f}
	status, missing := summarise(all, byKind)
	addOwn(missing, all, byKind)
	status.CompositeType = new(v1.TypeReferenceTo(f.Kind))
	status.Conditions = []commonv1.Condition{convergedOf(f), watchingOf(missing)}
	return status
}

// clusterStatusOf returns the status of all XR controllers together. Its conditions are not dated, and it has no time.
func clusterStatusOf(v view, operator v1alpha1.OperatorInfo) v1alpha1.DependencyWatchStatusStatus {
	status, missing := summarise(v.facts, v.byKind)
	// An XRD that can't have XRs is a matter of its own.
	addOwn(missing, slices.DeleteFunc(slices.Clone(v.facts), func(f Facts) bool { return f.Vacant }), v.byKind)
	status.Conditions = []commonv1.Condition{clusterConvergedOf(v.facts), watchingOf(missing)}
	status.Operator = &operator
	status.SharedWatches = sharedWatches(v.watches)
	status.SharedWatchesOmitted = int64(len(v.watches) - len(status.SharedWatches))
	for _, w := range v.watches {
		status.Objects += int64(w.Objects)
	}
	bytes := 0
	for _, f := range v.facts {
		bytes += f.Stats.Bytes
	}
	status.TrackerBytes = int64(rounded(bytes))
	return status
}

// summarise adds up what the trackers hold. It returns also the kinds they refer to that are not watched.
func summarise(all []Facts, byKind watchesByKind) (v1alpha1.DependencyWatchStatusStatus, map[schema.GroupVersionKind]unwatched) {
	var status v1alpha1.DependencyWatchStatusStatus
	for _, f := range all {
		status.Composites.Known += int64(f.Known)
		status.Composites.Tracked += int64(f.Stats.XRs)
		status.References.Total += int64(f.Stats.References)
		status.References.Composed += int64(f.Stats.Composed)
		status.References.Required += int64(f.Stats.Required)
		status.References.ByName += int64(f.Stats.ByName)
		status.References.ByLabels += int64(f.Stats.ByLabels)
	}

	kinds := kindsOf(all)
	missing := map[schema.GroupVersionKind]unwatched{}
	status.Watches.Wanted = int64(len(kinds))
	for _, k := range kinds {
		w := byKind[k.GVK]
		if w != nil && w.State == engine.Active {
			status.Watches.Active++
			continue
		}
		u := notWatched(k.GVK, w)
		if u.reason == commonv1.ReasonWatchesFailed {
			status.Watches.Failed++
		}
		missing[k.GVK] = u
	}

	listed := first(maxListed, kinds, func(a, b dependency.KindStats) int {
		return cmp.Or(cmp.Compare(b.References, a.References), dependency.CompareGVKs(a.GVK, b.GVK))
	})
	status.KindsOmitted = int64(len(kinds) - len(listed))
	status.Kinds = make([]v1alpha1.KindStatus, 0, len(listed))
	for _, k := range listed {
		status.Kinds = append(status.Kinds, kindStatus(k, byKind[k.GVK]))
	}
	return status, missing
}

// kindsOf returns the kinds that any of the trackers refers to, in no particular order.
func kindsOf(all []Facts) []dependency.KindStats {
	if len(all) == 1 {
		return all[0].Stats.Kinds
	}
	totals := map[schema.GroupVersionKind]dependency.KindStats{}
	for _, f := range all {
		for _, k := range f.Stats.Kinds {
			total := totals[k.GVK]
			total.GVK = k.GVK
			total.References += k.References
			total.Dependants += k.Dependants
			totals[k.GVK] = total
		}
	}
	return slices.Collect(maps.Values(totals))
}

func kindStatus(k dependency.KindStats, w *engine.WatchInfo) v1alpha1.KindStatus {
	apiVersion, kind := k.GVK.ToAPIVersionAndKind()
	status := v1alpha1.KindStatus{
		APIVersion: clip(apiVersion, maxAPIVersion),
		Kind:       clip(kind, maxKind),
		References: int64(k.References),
		Dependants: int64(k.Dependants),
	}
	if w != nil {
		status.Watch = v1alpha1.WatchState(w.State)
		status.Store = string(w.Store)
		status.Objects = int64(w.Objects)
		status.Message = clip(w.Message, maxMessage)
	}
	return status
}

// sharedWatches lists the watches that are not active first, then those with most objects: of too many, these are the ones to see.
func sharedWatches(watches []engine.WatchInfo) []v1alpha1.SharedWatch {
	listed := first(maxShared, watches, func(a, b engine.WatchInfo) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), cmp.Compare(b.Objects, a.Objects), dependency.CompareGVKs(a.GVK, b.GVK))
	})
	shared := make([]v1alpha1.SharedWatch, 0, len(listed))
	for _, w := range listed {
		apiVersion, kind := w.GVK.ToAPIVersionAndKind()
		shared = append(shared, v1alpha1.SharedWatch{
			APIVersion:  clip(apiVersion, maxAPIVersion),
			Kind:        clip(kind, maxKind),
			State:       v1alpha1.WatchState(w.State),
			Objects:     int64(w.Objects),
			Controllers: int64(w.Controllers),
			Message:     clip(w.Message, maxMessage),
		})
	}
	return shared
}

func rank(state engine.State) int {
	if state == engine.Active {
		return 1
	}
	return 0
}

// first returns the first n of all in sorted order. Sorting all of thousands to show a hundred would take most of the time that a
// status does, and so would moving rows about, instead of where they are.
func first[T any](n int, all []T, compare func(a, b T) int) []T {
	byRow := func(a, b int) int { return compare(all[a], all[b]) }
	rows := make([]int, 0, min(n, len(all))+1)
	for row := range all {
		if len(rows) == n && byRow(rows[n-1], row) <= 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(rows, row, byRow)
		rows = slices.Insert(rows, i, row)
		rows = rows[:min(n, len(rows))]
	}
	sorted := make([]T, 0, len(rows))
	for _, row := range rows {
		sorted = append(sorted, all[row])
	}
	return sorted
}

// rounded returns the number to within 4%, or 2 KiB. The estimate of memory changes by a few bytes with each name that an XR
// composes under, when nothing that is shown has changed: that is no reason to write.
func rounded(bytes int) int {
	unit := 4 << 10
	for bytes >= 32*unit {
		unit *= 2
	}
	return (bytes + unit/2) / unit * unit
}
