// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package watchstatus publishes, for people to read, what XRs depend on: a DependencyWatchStatus for each XR kind, and one for
// all of them together.
//
// The content is built from counts that the trackers and the engine keep anyway (build.go, pure functions). The publisher
// compares it, once an interval, with what is published, and writes what differs: a system in which nothing changes is not
// written to, and one in which much does no more often. Nothing reads these objects back but that comparison.
package watchstatus
