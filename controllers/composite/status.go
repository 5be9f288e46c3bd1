// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer"
)

// writeStatus writes what this run has to say, if it is anything new, and
// returns why the XR is not as it should be. A status that the API server
// refuses is such a reason: then what the functions said before stays.
func (p *pass) writeStatus(ctx context.Context) error {
	err := p.applyStatus(ctx, p.status())
	if err != nil && p.out.Complete && isRefused(err) {
		p.out.Complete = false
		p.err = errors.Join(p.err, fmt.Errorf("cannot write the status that the pipeline desires: %w", err))
		err = p.applyStatus(ctx, p.status())
	}
	switch {
	case err == nil:
		p.statusShown = true
		return p.err
	case apierrors.IsNotFound(err):
		p.gone = true // and with it all that could be said of it
		return nil
	case apierrors.IsConflict(err):
		p.outdated = true // the next run says it
		return p.err
	}
	return errors.Join(p.err, fmt.Errorf("cannot write the status: %w", err))
}

func (p *pass) applyStatus(ctx context.Context, status map[string]any) error {
	intent := composer.StatusIntent(p.xr, status, p.resource, p.xr.Unstructured)
	stored, sent, err := p.config.Applier.Apply(ctx, intent)
	if err != nil {
		return err
	}
	if sent {
		p.statusSent = true
		p.stored(stored)
	}
	return nil
}

// isRefused tells a status that will never be taken from an API server that is
// in trouble.
func isRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsInternalError(err)
}

// status returns all that the engine and the functions want of the XR's status.
func (p *pass) status() map[string]any {
	status := p.kept()
	if p.out.Complete {
		status = maps.Clone(p.out.Status)
	}
	if status == nil {
		status = map[string]any{}
	}
	p.acknowledge(status)
	kept := p.keptConditions()
	p.conditions = conditionsOf(kept, p.out, p.err, p.xr.GetGeneration())
	p.conditions = append(p.conditions, responsive(kept, p.session.Circuit(p.key))...)
	setConditions(status, dated(p.conditions, p.xr.Conditions(), p.config.Clock.Now()))
	return status
}

// acknowledge answers a request for a reconcile, once one has come to its end.
func (p *pass) acknowledge(status map[string]any) {
	handled := p.xr.ReconcileRequestedAt()
	if isWaiting(p.err) {
		handled = p.xr.LastHandledReconcileAt()
	}
	if handled != "" {
		status["lastHandledReconcileAt"] = handled
	}
}

// kept returns what engine and functions set of the status earlier, but for the
// conditions.
func (p *pass) kept() map[string]any {
	status := p.ownedStatus()
	delete(status, "conditions")
	return status
}

// keptConditions returns those of the conditions that engine and functions set
// earlier: what others set is not ours to touch.
func (p *pass) keptConditions() []commonv1.Condition {
	owned, _, _ := unstructured.NestedSlice(p.ownedStatus(), "conditions")
	var kept []commonv1.Condition
	for _, c := range p.xr.Conditions() {
		for _, o := range owned {
			if m, ok := o.(map[string]any); ok && m["type"] == c.Type {
				kept = append(kept, c)
				break
			}
		}
	}
	return kept
}

func (p *pass) ownedStatus() map[string]any {
	status, _ := composer.Owned(p.xr.Unstructured, v1.FieldOwnerComposite, "status")["status"].(map[string]any)
	return status
}

func setConditions(status map[string]any, conditions []commonv1.Condition) {
	list := make([]any, 0, len(conditions))
	for i := range conditions {
		// The converter fails for what isn't JSON; a condition is.
		c, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		list = append(list, c)
	}
	status["conditions"] = list
}
