// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// An Inspection is one round of a step: what its function was shown, and what it
// answered.
type Inspection struct {
	XR types.NamespacedName

	// Kind of the XR.
	Kind schema.GroupVersionKind

	Step     string
	Function string

	// Round counts from one within a run of the step.
	Round int

	// Kept tells that the answer was known, and that the function was not called.
	Kept bool

	// Began is when the round began, and Duration what it took to get the answer.
	Began    time.Time
	Duration time.Duration

	Request *Request

	// Response is the encoded response, for reading only; nil if there is none.
	Response []byte

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
