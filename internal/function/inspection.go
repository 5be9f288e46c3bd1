// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// An Inspection is one round of a step: what its function was shown, and what it
// answered.
type Inspection struct {
	XR types.NamespacedName

	// Kind of the XR; empty if it is only known from the request.
	Kind schema.GroupVersionKind

	Step     string
	Function string

	// Round counts from one within a run of the step.
	Round int

	// Tag of the request.
	Tag string

	// Kept tells that the answer was taken from those that are kept, and that the
	// function was not called.
	Kept bool

	// Began is when the round began, and Duration what it took to get the answer.
	Began    time.Time
	Duration time.Duration

	// Request and Response are shared with whoever runs the pipeline: neither
	// side changes them any more. Response is nil if there is none.
	Request  *fnv1.RunFunctionRequest
	Response *fnv1.RunFunctionResponse

	// Err is why the round failed, if it did.
	Err error
}

// An Inspector is told of each round of each step, by many goroutines at once.
// It holds none of them up: Inspect doesn't wait, for a lock that is held across
// I/O least of all, and leaves what takes long to a goroutine of its own. It
// sees secrets, and must not pass them on.
type Inspector interface {
	Inspect(Inspection)
}
