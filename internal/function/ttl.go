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

// takeoverTime is for how long an older version may still be reached where two
// versions have the same address.
const takeoverTime = 2 * time.Minute

// An installation is what the operator's users say of a function.
type installation struct {
	version   string // of what answers: another may answer otherwise
	forgotten int    // how often what it answered was forgotten

	// settles is until when another version may answer in its place; zero if none
	// may. An answer is good until then at most.
	settles    time.Time
	keeps      bool // says that its answers may be kept
	asReturned bool // says that a TTL of sdkTTL was chosen
}

// describe the function. One that is not installed is for its caller to complain
// about.
func (r *Runner) describe(ctx context.Context, function string) (installation, error) {
	fn := &pkgv1.Function{}
	err := r.config.Functions.Get(ctx, types.NamespacedName{Name: function}, fn)
	if apierrors.IsNotFound(err) {
		r.versions.drop(function)
		return installation{}, nil
	}
	if err != nil {
		return installation{}, fmt.Errorf("cannot get Function %q: %w", function, err)
	}
	out := installation{asReturned: fn.Annotations[pkgv1.AnnotationResponseTTL] == pkgv1.ResponseTTLAsReturned}
	// Whoever develops a function wants to see what it says now, and not later what
	// it said before.
	if developmentTarget(fn) != "" || fn.Annotations[pkgv1.AnnotationFunctionCache] == pkgv1.FunctionCacheOff {
		r.config.Responses.Forget(function)
		return out, nil
	}
	active, err := activeRevision(ctx, r.config.Functions, function)
	if err != nil || active == nil {
		return out, err
	}
	out.forgotten = r.config.Responses.forgottenOf(function)
	out.version = string(active.UID) + " " + active.Spec.Image
	out.settles = r.versions.note(function, version{
		name: out.version, endpoint: active.Status.Endpoint, made: active.CreationTimestamp.Time,
	}, r.config.Clock.Now())
	out.keeps = true
	return out, nil
}

// isStill tells whether the function is as it was described. What was called
// while one version took over from another may have been either.
func (r *Runner) isStill(ctx context.Context, function string, described installation) bool {
	now, err := r.describe(ctx, function)
	return err == nil && now == described
}

// expiry is until when the response is good, from now on; zero if it must not be
// reused.
func (r *Runner) expiry(fn installation, resp *fnv1.RunFunctionResponse) time.Time {
	ttl := r.ttl(fn, resp)
	if ttl <= 0 {
		return time.Time{}
	}
	expires := r.config.Clock.Now().Add(ttl)
	if !fn.settles.IsZero() && expires.After(fn.settles) {
		return fn.settles
	}
	return expires
}

// ttl is for how long the response is good.
func (r *Runner) ttl(fn installation, resp *fnv1.RunFunctionResponse) time.Duration {
	stated := resp.GetMeta().GetTtl()
	if stated == nil {
		return r.config.DefaultTTL
	}
	ttl := max(stated.AsDuration(), 0)
	if ttl == sdkTTL && !fn.asReturned {
		return r.config.DefaultTTL
	}
	return ttl
}
