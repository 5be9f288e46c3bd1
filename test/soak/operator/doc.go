// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package operator soaks the operator as it is installed: two replicas of it, each a
// process under the operator's ServiceAccount, behind a proxy that injects faults, on
// a real API server and with real functions. Processes are terminated and killed,
// kinds and grants are taken away and given back.
//
// No resync comes to help. What failed is tried again, since no event tells when an
// API server that refused a write takes it.
package operator
