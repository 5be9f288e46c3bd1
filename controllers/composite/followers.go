// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// FollowersOf returns the XRs, of one kind, that the present revisions of a
// Composition are news to: those that would use another revision than they do,
// that could use one and don't, and those that something keeps from being
// synced. An XR that is content with its revision is left alone.
func FollowersOf(
	xrs []xr.XR, d *v1.CompositeResourceDefinition, composition string, revisions []v1.CompositionRevision,
) []types.NamespacedName {
	var out []types.NamespacedName
	for _, x := range xrs {
		if named := namedComposition(x, d); named != "" && named != composition {
			continue
		}
		revision, err := chooseRevision(x, d, composition, revisions)
		if err == nil && isSynced(x) && x.CompositionRevisionRef() == revision.Name && usable(revision) == nil {
			continue
		}
		out = append(out, keyOf(x))
	}
	return out
}

// UsersOf returns the XRs that are composed with one of the named revisions. If
// nothing but the health of a function may have changed, only those that aren't
// synced care.
func UsersOf(xrs []xr.XR, revisions map[string]bool, onlyUnsynced bool) []types.NamespacedName {
	var out []types.NamespacedName
	for _, x := range xrs {
		if revisions[x.CompositionRevisionRef()] && !(onlyUnsynced && isSynced(x)) {
			out = append(out, keyOf(x))
		}
	}
	return out
}

func isSynced(x xr.XR) bool {
	c := find(x.Conditions(), commonv1.TypeSynced)
	return c != nil && c.Status == corev1.ConditionTrue
}

func keyOf(x xr.XR) types.NamespacedName {
	return types.NamespacedName{Namespace: x.GetNamespace(), Name: x.GetName()}
}
