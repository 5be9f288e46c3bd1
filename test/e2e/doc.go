// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end cases: what a user sees of the operator, on a
// real API server, with functions behind mutual TLS, and with no more rights
// than config/ grants.
//
// The operator runs in the test's process, so that the race detector sees it
// and a fault can be injected into its requests.
package e2e
