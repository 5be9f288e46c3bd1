// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package xr gives typed access to composite resources (XRs), whose kinds exist
// only at run time, and names what they compose. It knows where each scope of XR
// keeps the fields that the engine adds to the user's schema: below
// spec.crossplane, or, for the legacy scope, directly below spec.
//
// Reading never fails. A field of another shape than the schema prescribes,
// which the API server lets nobody write, reads as absent.
package xr
