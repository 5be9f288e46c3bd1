// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package outage tests that the operator outlives what goes wrong between it and
// the API server: no change is lost, nothing has to be restarted, and meanwhile the
// operator tells no lies of what it can see.
//
// All tests share one operator, which is never restarted, behind a proxy that
// injects faults. What is changed meanwhile is changed at the API server itself.
// Afterwards each XR must show what a pure function makes of the objects that
// there are; no resync and no poll comes to help. With SOAK set, the long forms of
// the tests run as well.
package outage
