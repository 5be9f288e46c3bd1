// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package app is the operator as a function: options, the wiring of all parts by their constructors, and Run. It keeps nothing
// between two runs, so that tests can run several operators in one process.
package app
