// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

// Kinds of this group.
const (
	KindFunction         = "Function"
	KindFunctionRevision = "FunctionRevision"
)

// LabelParentPackage names the Function of a FunctionRevision.
const LabelParentPackage = "pkg.crossplane.io/package"

// Annotations of a Function.
const (
	// AnnotationRuntime says where the function runs; RuntimeDevelopment is the one value with a meaning here.
	AnnotationRuntime = "render.crossplane.io/runtime"
	// AnnotationRuntimeDevelopmentTarget is the host:port of a plain-text server that runs the function.
	AnnotationRuntimeDevelopmentTarget = "render.crossplane.io/runtime-development-target"
	// AnnotationResponseTTL says how the TTLs of the function's responses are read.
	AnnotationResponseTTL = "crosswatch.io/response-ttl"
	// AnnotationFunctionCache says whether the function's responses are kept until their TTL ends.
	AnnotationFunctionCache = "crosswatch.io/function-cache"
)

// Values of annotations.
const (
	// RuntimeDevelopment is a server that somebody started by hand.
	RuntimeDevelopment = "Development"
	// ResponseTTLAsReturned honours the function SDKs' default TTL, instead of reading it as no opinion.
	ResponseTTLAsReturned = "AsReturned"
	// FunctionCacheOff calls the function in each run.
	FunctionCacheOff = "off"
)

// CapabilityComposition is that of a function that can be a step of a Composition's pipeline.
const CapabilityComposition = "composition"
