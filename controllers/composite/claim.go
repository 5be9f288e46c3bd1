// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"fmt"

	"github.com/crosswatch-io/crosswatch/internal/composer"
)

// claim puts onto the XR what it needs before anything is composed: the label
// that all of it will carry, the finalizer, and what it is composed with.
func (p *pass) claim(ctx context.Context) error {
	wanted := p.typed(p.xr.DeepCopy())
	wanted.SetCompositionRef(p.composition)
	wanted.SetCompositionRevisionRef(p.revision.Name)

	stored, sent, err := p.config.Applier.Apply(ctx, composer.XRIntent(wanted, p.config.Scope, p.resource, p.xr.Unstructured))
	if err != nil {
		return fmt.Errorf("cannot write what the XR is composed with: %w", err)
	}
	if sent {
		p.stored(stored)
	}
	return nil
}
