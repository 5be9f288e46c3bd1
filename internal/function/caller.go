// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import "context"

// A Caller calls a function once. The response is the caller's. Implementations
// are safe for concurrent use.
type Caller interface {
	Call(ctx context.Context, function string, req *Request) (*Response, error)
}
