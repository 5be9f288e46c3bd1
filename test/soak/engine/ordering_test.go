// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// recordFirst is the order of invariant 1.
type recordFirst struct{}

func (recordFirst) require(ctx context.Context, c *engine.Controller, x *run, ref dependency.Reference) ([]*unstructured.Unstructured, error) {
	requirement := x.requirement(ref)
	informer, err := c.Require(ctx, x.name(), requirement)
	if err != nil {
		return nil, err
	}
	x.required = append(x.required, requirement)
	return read(informer, ref), nil
}
