// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package watchstatus publishes, for people to read, what XRs depend on: a DependencyWatchStatus for each XR kind, and one for
// all of them together.
//
// The content is built from counts that the trackers and the engine keep anyway (facts.go, build.go, conditions.go). The publisher
// compares it, once an interval, with what is published, and writes what differs: a system in which nothing changes is written to
// by a heartbeat only, and one in which much does no more often than the interval allows, whoever leads (publisher.go). Counts are
// content, also those that change all the time: a number that is shown is at most an interval old.
//
// Of these objects the publisher reads back only what that comparison takes, and the time when each was written. What is ours of
// them is the reference to the XRD and the status as a whole: a foreign hand in it is undone by the next publication, but for one
// that only sets times that might be ours. Everything else is left alone (write.go).
package watchstatus
