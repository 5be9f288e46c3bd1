// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine soaks the engine of the operator, with a reconciler of its own that
// does in a few lines what the composer does. That never asks to run again, not even
// if it failed.
package engine
