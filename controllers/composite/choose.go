// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// choose finds the revision that the XR is composed with. An XR without one
// depends on nothing; a revision that appears wakes it.
func (p *pass) choose(ctx context.Context) error {
	err := p.chooseRevision(ctx)
	if err != nil {
		p.session.Settle(p.key)
	}
	return err
}

func (p *pass) chooseRevision(ctx context.Context) error {
	p.definition = &v1.CompositeResourceDefinition{}
	if err := p.config.Client.Get(ctx, types.NamespacedName{Name: p.config.Definition}, p.definition); err != nil {
		return fmt.Errorf("cannot read CompositeResourceDefinition %q: %w", p.config.Definition, err)
	}
	var err error
	if p.composition, err = findComposition(ctx, p.config.Client, p.xr, p.definition); err != nil {
		return err
	}
	revisions, err := revisionsOf(ctx, p.config.Client, p.composition)
	if err != nil {
		return err
	}
	p.revision, err = chooseRevision(p.xr, p.definition, p.composition, revisions)
	if err != nil {
		return err
	}
	return usable(p.revision)
}

// findComposition returns the name of the XR's Composition, of which it makes
// sure that it exists and composes this kind.
func findComposition(ctx context.Context, c client.Reader, x xr.XR, d *v1.CompositeResourceDefinition) (string, error) {
	name := namedComposition(x, d)
	if name == "" {
		var all v1.CompositionList
		if err := c.List(ctx, &all, client.MatchingLabels(x.CompositionSelector())); err != nil {
			return "", fmt.Errorf("cannot list Compositions: %w", err)
		}
		return selectComposition(x, all.Items)
	}
	composition := &v1.Composition{}
	err := c.Get(ctx, types.NamespacedName{Name: name}, composition)
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("there is no Composition %q", name)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read Composition %q: %w", name, err)
	}
	if !composes(composition, x) {
		of := composition.Spec.CompositeTypeRef
		return "", fmt.Errorf("cannot use Composition %q: it composes %s of %s, not %s of %s",
			name, of.Kind, of.APIVersion, x.GetKind(), x.GetAPIVersion())
	}
	return name, nil
}

func revisionsOf(ctx context.Context, c client.Reader, composition string) ([]v1.CompositionRevision, error) {
	var all v1.CompositionRevisionList
	if err := c.List(ctx, &all, client.MatchingLabels{v1.LabelCompositionName: composition}); err != nil {
		return nil, fmt.Errorf("cannot list the revisions of Composition %q: %w", composition, err)
	}
	return all.Items, nil
}

// usable says why an XR can't be composed with a revision.
func usable(revision *v1.CompositionRevision) error {
	valid := revision.Status.GetCondition(commonv1.TypeValidPipeline)
	switch valid.Status {
	case corev1.ConditionTrue:
		return nil
	case corev1.ConditionFalse:
		return fmt.Errorf("cannot use CompositionRevision %q: its pipeline is not valid: %s", revision.Name, valid.Message)
	case corev1.ConditionUnknown:
	}
	return fmt.Errorf("cannot use CompositionRevision %q: its pipeline has not been checked yet", revision.Name)
}
