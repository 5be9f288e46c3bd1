// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer"
)

// Composing takes one XR through its pipeline.
type Composing interface {
	Compose(ctx context.Context, in composer.Input) (composer.Output, error)
}

// Config is what a Reconciler needs; all of it is required.
type Config struct {
	// Client reads XRDs, Compositions and CompositionRevisions from a cache.
	Client client.Reader
	// Dynamic writes to XRs.
	Dynamic  dynamic.Interface
	Composer Composing
	// Applier is the one that Composer uses.
	Applier *composer.Applier
	Events  events.EventRecorder
	Clock   clock.PassiveClock

	// SyncInterval is after what time each XR is reconciled, whatever happens.
	SyncInterval time.Duration

	// Definition is the name of the XRD, and Scope the scope of its kind.
	Definition string
	Scope      v1.Scope
}
