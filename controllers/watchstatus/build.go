// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// maxListed is how many kinds, and how many shared watches, an object lists: with thousands of them it stays small.
const maxListed = 100

// Facts are what is known of one XR controller.
type Facts struct {
	// XRD is the name of the definition.
	XRD string
	// Kind of the XRs.
	Kind schema.GroupVersionKind
	// Synced is whether all XRs are known, which they are not while the controller or its watch starts.
	Synced bool
	// Known is how many XRs there are, and Settled of how many of them it is known what they depend on.
	Known, Settled int
	// Stats of the controller's tracker.
	Stats dependency.Stats
}

func (f Facts) isConverged() bool { return f.Synced && f.Settled >= f.Known }

// StatusOf returns the status of one XR controller, given the watches in service. It has neither conditions nor a time.
func StatusOf(f Facts, watches []engine.WatchInfo) v1alpha1.DependencyWatchStatusStatus {
	status := summarise([]Facts{f}, watches)
	status.CompositeType = new(v1.TypeReferenceTo(f.Kind))
	return status
}

// ClusterStatusOf returns the status of all XR controllers together. It has neither conditions nor a time.
func ClusterStatusOf(all []Facts, watches []engine.WatchInfo) v1alpha1.DependencyWatchStatusStatus {
	status := summarise(all, watches)
	status.SharedWatches = sharedWatches(watches)
	return status
}

func summarise(all []Facts, watches []engine.WatchInfo) v1alpha1.DependencyWatchStatusStatus {
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
	byKind := make(map[schema.GroupVersionKind]engine.WatchInfo, len(watches))
	for _, w := range watches {
		byKind[w.GVK] = w
	}
	status.Watches.Wanted = int64(len(kinds))
	for _, k := range kinds {
		count(&status.Watches, byKind[k.GVK].State)
	}
	listed := kinds[:min(len(kinds), maxListed)]
	status.KindsOmitted = int64(len(kinds) - len(listed))
	for _, k := range listed {
		status.Kinds = append(status.Kinds, kindStatus(k, byKind[k.GVK]))
	}
	return status
}

func count(counts *v1alpha1.WatchCounts, state engine.State) {
	switch state {
	case engine.Active:
		counts.Active++
	case engine.Forbidden, engine.NotFound, engine.Unwatchable, engine.Failed:
		counts.Failed++
	default: // it starts or stops
	}
}

// kindsOf returns the kinds that any of the trackers refers to, those with most references first, equals in the order of their
// names.
func kindsOf(all []Facts) []dependency.KindStats {
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
	kinds := make([]dependency.KindStats, 0, len(totals))
	for _, k := range totals {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b dependency.KindStats) int {
		return cmp.Or(cmp.Compare(b.References, a.References), compareKinds(a.GVK, b.GVK))
	})
	return kinds
}

func kindStatus(k dependency.KindStats, watch engine.WatchInfo) v1alpha1.KindStatus {
	apiVersion, kind := k.GVK.ToAPIVersionAndKind()
	return v1alpha1.KindStatus{
		APIVersion: apiVersion,
		Kind:       kind,
		References: int64(k.References),
		Dependants: int64(k.Dependants),
		Watch:      v1alpha1.WatchState(watch.State),
		Message:    watch.Message,
	}
}

// sharedWatches lists the watches that fail first: of too many, these are the ones to see.
func sharedWatches(watches []engine.WatchInfo) []v1alpha1.SharedWatch {
	sorted := slices.Clone(watches)
	slices.SortFunc(sorted, func(a, b engine.WatchInfo) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), compareKinds(a.GVK, b.GVK))
	})
	sorted = sorted[:min(len(sorted), maxListed)]
	shared := make([]v1alpha1.SharedWatch, 0, len(sorted))
	for _, w := range sorted {
		apiVersion, kind := w.GVK.ToAPIVersionAndKind()
		shared = append(shared, v1alpha1.SharedWatch{
			APIVersion:  apiVersion,
			Kind:        kind,
			State:       v1alpha1.WatchState(w.State),
			Objects:     int64(w.Objects),
			Controllers: int64(len(w.Controllers)),
			Message:     w.Message,
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

func compareKinds(a, b schema.GroupVersionKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
}
