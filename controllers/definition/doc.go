// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package definition makes CRDs of CompositeResourceDefinitions (XRDs) and runs the controllers of the XR kinds.
//
// Render says what CRD an XRD defines; it is a pure function. The reconciler applies that CRD when it differs from the one
// there is, and starts the XR controller once the API server serves the kind. Nothing waits for that: the CRD's own event
// brings the reconciler back. A CRD that the XRD does not control is never touched.
//
// Deletion goes the other way round, each step only when the one before is complete: the XRs go while their controller still
// runs, since it lets go of their finalizers; then the controller, with what it tracked; then the CRD; then the finalizer.
package definition
