// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// Drain is how long a revision that became inactive keeps its Deployment: longer than the calls take that began before.
const Drain = time.Minute

// superseded returns which revisions of a Function are active without need: all but the newest, which is to take over, and the one
// in force, which serves until then.
func superseded(revisions []pkgv1.FunctionRevision) []*pkgv1.FunctionRevision {
	inForce := function.InForce(revisions)
	var newest *pkgv1.FunctionRevision
	var active []*pkgv1.FunctionRevision
	for i := range revisions {
		r := &revisions[i]
		if r.Spec.DesiredState != pkgv1.RevisionActive {
			continue
		}
		active = append(active, r)
		if newest == nil || r.Spec.Revision > newest.Spec.Revision {
			newest = r
		}
	}
	return slices.DeleteFunc(active, func(r *pkgv1.FunctionRevision) bool { return r == newest || r == inForce })
}

// surplus returns the oldest inactive revisions beyond the limit of the Function that may go now, and after what time others may:
// never the one for its image, and none whose Deployment may still have a call.
func surplus(fn *pkgv1.Function, revisions []pkgv1.FunctionRevision, now time.Time) (gone []*pkgv1.FunctionRevision, wait time.Duration) {
	limit := ptr.Deref(fn.Spec.RevisionHistoryLimit, 1)
	if limit <= 0 {
		return nil, 0
	}
	var inactive []*pkgv1.FunctionRevision
	for i := range revisions {
		r := &revisions[i]
		if r.Spec.DesiredState != pkgv1.RevisionActive && r.Name != revisionName(fn) {
			inactive = append(inactive, r)
		}
	}
	slices.SortFunc(inactive, func(a, b *pkgv1.FunctionRevision) int { return cmp.Compare(a.Spec.Revision, b.Spec.Revision) })
	for _, r := range inactive[:max(0, len(inactive)-int(limit))] {
		rest := draining(r, now)
		if rest > 0 {
			wait = sooner(wait, rest)
			continue
		}
		gone = append(gone, r)
	}
	return gone, wait
}

// draining returns for how long the Deployment of an inactive revision has to stay.
func draining(revision *pkgv1.FunctionRevision, now time.Time) time.Duration {
	c := revision.Status.GetCondition(commonv1.TypeRuntimeHealthy)
	if c.Reason != commonv1.ReasonInactivePackageRevision {
		return Drain
	}
	return max(0, Drain-now.Sub(c.LastTransitionTime.Time))
}

// sooner returns the shorter of two times to wait, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
