// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crosswatch-io/crosswatch/internal/function"
	"github.com/crosswatch-io/crosswatch/internal/inspect"
)

// addInspector lets the manager run what writes the rounds of functions to where the options say, and returns that; nil if they
// say nothing.
func addInspector(mgr ctrl.Manager, o Options) (function.Inspector, error) {
	if o.Inspect == "" {
		return nil, nil
	}
	to, err := inspect.ParseDestination(o.Inspect)
	if err != nil {
		return nil, err
	}
	stream := inspect.NewStream(to, mgr.GetLogger().WithName("inspect"))
	if err := mgr.Add(stream); err != nil {
		return nil, fmt.Errorf("cannot set up the inspection of functions: %w", err)
	}
	return stream, nil
}
