// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

// What tests of the order of runs compare.
const (
	PriorityResync  = priorityResync
	PriorityBacklog = priorityBacklog
)

var PriorityAfter = priorityAfter
