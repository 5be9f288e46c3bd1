// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package definition makes CRDs of CompositeResourceDefinitions (XRDs), gives access to them, and runs the controllers of the XR
// kinds.
//
// Render says what CRD an XRD defines; it is a pure function. The reconciler applies that CRD when it differs from the one
// there is, and starts the XR controller once the API server serves the kind. Nothing waits for that: the CRD's own event
// brings the reconciler back. A CRD that the XRD does not control is never touched, nor is a kind that is served without a CRD.
//
// What rights the operator has to XRs, and users by view and edit, follows from the XRDs: a second controller keeps the rules of
// three ClusterRoles. Users get rules for CRDs that are there. The operator needs its own earlier: an XRD without a CRD counts once
// the API server has said that nobody else serves the kind. Before a kind is served, the reconciler has the operator's own rules
// kept and asks whether they are in force, so that nothing ever asks for XRs in vain.
//
// Deletion goes the other way round, each step only when the one before is complete: the XRs go while their controller still
// runs, since it lets go of their finalizers; then the controller, with what it tracked; then the CRD; then the finalizer.
package definition
