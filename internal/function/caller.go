// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// A Caller calls a function once. It neither changes the request nor keeps it
// after returning; the response is the caller's. Implementations are safe for
// concurrent use.
type Caller interface {
	Call(ctx context.Context, function string, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)
}
