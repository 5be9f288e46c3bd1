// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// plan is what brings a Composition's revisions in line with it: nothing, a new revision of that number, or that number for a
// revision that there is.
type plan struct {
	create bool
	update *v1.CompositionRevision
	number int64
}

func (p plan) isNothing() bool { return !p.create && p.update == nil }

// planFor looks for the content of that hash among the Composition's revisions: it must be there and be the newest. A revision
// that nobody controls, as after a restore from a backup, is taken over.
func planFor(c *v1.Composition, hash string, revisions []v1.CompositionRevision) plan {
	var highest int64
	var current *v1.CompositionRevision
	for i := range revisions {
		highest = max(highest, revisions[i].Spec.Revision)
		if revisions[i].Labels[v1.LabelCompositionHash] == hashLabel(hash) && mayUse(c, &revisions[i]) {
			current = newer(current, &revisions[i])
		}
	}
	switch {
	case current == nil:
		return plan{create: true, number: highest + 1}
	case current.Spec.Revision < highest:
		return plan{update: current, number: highest + 1}
	case metav1.GetControllerOf(current) == nil:
		return plan{update: current, number: highest}
	}
	return plan{}
}

func mayUse(c *v1.Composition, revision *v1.CompositionRevision) bool {
	owner := metav1.GetControllerOf(revision)
	return owner == nil || owner.UID == c.UID
}

func newer(a, b *v1.CompositionRevision) *v1.CompositionRevision {
	if a != nil && a.Spec.Revision >= b.Spec.Revision {
		return a
	}
	return b
}
