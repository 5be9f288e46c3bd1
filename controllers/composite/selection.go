// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// namedComposition returns the Composition that is named for the XR: the one
// that its kind enforces, else its own, else, if it has no selector, the kind's
// default. It is empty if none is.
func namedComposition(x xr.XR, d *v1.CompositeResourceDefinition) string {
	if enforced := d.Spec.EnforcedCompositionRef; enforced != nil {
		return enforced.Name
	}
	if own := x.CompositionRef(); own != "" {
		return own
	}
	if byDefault := d.Spec.DefaultCompositionRef; byDefault != nil && len(x.CompositionSelector()) == 0 {
		return byDefault.Name
	}
	return ""
}

// selectComposition returns the first by name of those that match the XR's
// selector and compose its kind.
func selectComposition(x xr.XR, all []v1.Composition) (string, error) {
	selector := labels.SelectorFromSet(x.CompositionSelector())
	var found []string
	for i := range all {
		if composes(&all[i], x) && selector.Matches(labels.Set(all[i].Labels)) {
			found = append(found, all[i].Name)
		}
	}
	if len(found) > 0 {
		return slices.Min(found), nil
	}
	if selector.Empty() {
		return "", fmt.Errorf("there is no Composition that composes %s of %s", x.GetKind(), x.GetAPIVersion())
	}
	return "", fmt.Errorf("there is no Composition with labels %s that composes %s of %s", selector, x.GetKind(), x.GetAPIVersion())
}

func composes(c *v1.Composition, x xr.XR) bool {
	return c.Spec.CompositeTypeRef == v1.TypeReference{APIVersion: x.GetAPIVersion(), Kind: x.GetKind()}
}

// chooseRevision returns the revision of its Composition that the XR uses: the
// one that it names if it doesn't follow the newest, else the newest that its
// selector matches.
func chooseRevision(
	x xr.XR, d *v1.CompositeResourceDefinition, composition string, revisions []v1.CompositionRevision,
) (*v1.CompositionRevision, error) {
	if name := x.CompositionRevisionRef(); name != "" && policyOf(x, d) == v1.UpdateManual {
		i := slices.IndexFunc(revisions, func(r v1.CompositionRevision) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no revision %q of Composition %q", name, composition)
		}
		return &revisions[i], nil
	}

	selector := revisionSelectorOf(x, d)
	matching := slices.DeleteFunc(slices.Clone(revisions), func(r v1.CompositionRevision) bool {
		return !selector.Matches(labels.Set(r.Labels))
	})
	switch {
	case len(matching) > 0:
		newest := slices.MaxFunc(matching, func(a, b v1.CompositionRevision) int {
			return cmp.Or(cmp.Compare(a.Spec.Revision, b.Spec.Revision), cmp.Compare(a.Name, b.Name))
		})
		return &newest, nil
	case selector.Empty():
		return nil, fmt.Errorf("there is no revision of Composition %q yet", composition)
	}
	return nil, fmt.Errorf("there is no revision of Composition %q with labels %s", composition, selector)
}

func policyOf(x xr.XR, d *v1.CompositeResourceDefinition) v1.UpdatePolicy {
	policy := v1.UpdatePolicy(x.CompositionUpdatePolicy())
	if byDefault := d.Spec.DefaultCompositionUpdatePolicy; policy == "" && byDefault != nil {
		policy = *byDefault
	}
	return cmp.Or(policy, v1.UpdateAutomatic)
}

func revisionSelectorOf(x xr.XR, d *v1.CompositeResourceDefinition) labels.Selector {
	own := x.CompositionRevisionSelector()
	if byDefault := d.Spec.DefaultCompositionRevisionSelector; len(own) == 0 && byDefault != nil {
		own = byDefault.MatchLabels
	}
	return labels.SelectorFromSet(own)
}
