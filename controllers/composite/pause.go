// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"fmt"
	"slices"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

const pausedMessage = "Reconciling is paused by an annotation."

// pause says that nothing is done, and does nothing.
func (p *pass) pause(ctx context.Context) error {
	p.session.Settle(p.key)
	status := p.kept()
	if status == nil {
		status = map[string]any{}
	}
	kept := p.keptConditions()
	p.conditions = replaced(paused(kept), responsive(kept, p.session.Circuit(p.key))...)
	setConditions(status, dated(p.conditions, p.xr.Conditions(), p.config.Clock.Now()))
	if err := p.applyStatus(ctx, status); err != nil {
		return fmt.Errorf("cannot write that reconciling is paused: %w", err)
	}
	p.tellConditions()
	return nil
}

// paused replaces what was said of syncing, and keeps all else.
func paused(kept []commonv1.Condition) []commonv1.Condition {
	synced := commonv1.False(commonv1.TypeSynced, commonv1.ReasonReconcilePaused, pausedMessage)
	if last := find(kept, synced.Type); last != nil {
		synced.ObservedGeneration = last.ObservedGeneration
	}
	return replaced(kept, synced)
}

// replaced returns the conditions with some instead of those of the same types.
func replaced(conditions []commonv1.Condition, by ...commonv1.Condition) []commonv1.Condition {
	others := slices.DeleteFunc(slices.Clone(conditions), func(c commonv1.Condition) bool { return find(by, c.Type) != nil })
	return append(others, by...)
}
