// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package installation is the operator on a control plane as its users have it:
// with the manifests that we ship, under its own ServiceAccount, and with functions
// that it trusts. What runs the operator, and how, is up to the tests.
package installation
