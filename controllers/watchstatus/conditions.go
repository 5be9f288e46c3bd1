// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// maxNamed is how many XRDs, or kinds, a message names. No message has a count: one that changes with each XR would be a
// transition each time.
const maxNamed = 5

// convergedOf says whether it is known what each XR of the XRD depends on.
func convergedOf(f Facts) commonv1.Condition {
	if f.Down != "" {
		return commonv1.False(commonv1.TypeConverged, commonv1.ReasonNotEstablished, f.notEstablished())
	}
	return clusterConvergedOf([]Facts{f})
}

// clusterConvergedOf says whether it is known what each XR depends on. An XRD that can't have XRs holds nobody up.
func clusterConvergedOf(all []Facts) commonv1.Condition {
	var behind []string
	for _, f := range all {
		if !f.isConverged() && !f.Vacant {
			behind = append(behind, fmt.Sprintf("%q", f.XRD))
		}
	}
	if len(behind) == 0 {
		return commonv1.True(commonv1.TypeConverged, commonv1.ReasonTracked)
	}
	named := strings.Join(behind[:min(len(behind), maxNamed)], ", ")
	if len(behind) > maxNamed {
		named += " and others"
	}
	return commonv1.False(commonv1.TypeConverged, commonv1.ReasonStarting,
		fmt.Sprintf("not every XR of XRD %s has been reconciled since the operator started", named))
}

// An unwatched kind is one that should be watched and is not, and why.
type unwatched struct {
	gvk     schema.GroupVersionKind
	reason  string
	state   engine.State // of the watch, if there is one
	message string
}

// notWatched describes the kind of a watch that is not active; it is nil where none is in service.
func notWatched(gvk schema.GroupVersionKind, w *engine.WatchInfo) unwatched {
	switch {
	case w == nil:
		return unwatched{gvk: gvk, reason: commonv1.ReasonWaitingForWatch, message: "no watch is in service yet"}
	case w.State == engine.Starting, w.State == engine.Stopping:
		return unwatched{gvk, commonv1.ReasonWaitingForWatch, w.State, w.Message}
	default:
		return unwatched{gvk, commonv1.ReasonWatchesFailed, w.State, w.Message}
	}
}

func (u unwatched) String() string {
	apiVersion, kind := u.gvk.ToAPIVersionAndKind()
	why := clip(u.message, maxMessage)
	if u.state != "" {
		why = string(u.state) + ": " + why
	}
	return fmt.Sprintf("kind %q of %s (%s)", clip(kind, maxKind), clip(apiVersion, maxAPIVersion), why)
}

// addOwn adds the XR kinds that are not watched to the kinds that XRs depend on.
func addOwn(missing map[schema.GroupVersionKind]unwatched, all []Facts, byKind watchesByKind) {
	for _, f := range all {
		switch {
		case f.Down != "":
			missing[f.Kind] = unwatched{gvk: f.Kind, reason: commonv1.ReasonNotEstablished, message: f.notEstablished()}
		case !byKind.isActive(f.Kind):
			missing[f.Kind] = notWatched(f.Kind, byKind[f.Kind])
		}
	}
}

// watchingOf says whether all kinds that should be watched are, and names those that are not: what can't be watched before what
// only takes time, and equals in the order of their names.
func watchingOf(missing map[schema.GroupVersionKind]unwatched) commonv1.Condition {
	if len(missing) == 0 {
		return commonv1.True(commonv1.TypeWatching, commonv1.ReasonWatchesActive)
	}
	named := first(maxNamed, slices.Collect(maps.Values(missing)), func(a, b unwatched) int {
		return cmp.Or(cmp.Compare(urgency(a.reason), urgency(b.reason)), dependency.CompareGVKs(a.gvk, b.gvk))
	})
	var each []string
	for _, u := range named {
		each = append(each, u.String())
	}
	if len(missing) > len(named) {
		each = append(each, "and others")
	}
	return commonv1.False(commonv1.TypeWatching, named[0].reason, "not watched: "+strings.Join(each, "; "))
}

func urgency(reason string) int {
	return slices.Index([]string{commonv1.ReasonWatchesFailed, commonv1.ReasonNotEstablished, commonv1.ReasonWaitingForWatch}, reason)
}

// since dates the conditions: one that says what it said before keeps its time. Whatever other conditions there were goes.
func since(now metav1.Time, before, conditions []commonv1.Condition) []commonv1.Condition {
	for i, c := range conditions {
		conditions[i].LastTransitionTime = now
		if j := slices.IndexFunc(before, c.Same); j >= 0 {
			conditions[i].LastTransitionTime = before[j].LastTransitionTime
		}
	}
	return conditions
}
