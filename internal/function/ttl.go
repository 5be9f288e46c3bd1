// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// sdkTTL is what the function SDKs return unless the function's author chose
// something. It suits engines that poll, so it is read as no opinion.
const sdkTTL = time.Minute

// ttl is for how long the response is good.
func (r *Runner) ttl(ctx context.Context, function string, resp *fnv1.RunFunctionResponse) (time.Duration, error) {
	stated := resp.GetMeta().GetTtl()
	if stated == nil {
		return r.config.DefaultTTL, nil
	}
	ttl := max(stated.AsDuration(), 0)
	if ttl != sdkTTL || r.config.DefaultTTL == sdkTTL {
		return ttl, nil
	}

	fn := &pkgv1.Function{}
	err := r.config.Functions.Get(ctx, types.NamespacedName{Name: function}, fn)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return 0, fmt.Errorf("cannot get Function %q: %w", function, err)
	case fn.Annotations[pkgv1.AnnotationResponseTTL] == pkgv1.ResponseTTLAsReturned:
		return ttl, nil
	default:
		return r.config.DefaultTTL, nil
	}
}
