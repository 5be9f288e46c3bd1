// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds what the statuses of all kinds have in common: conditions, and the types and reasons that they use.
//
// It is no API group of its own; its types are embedded in those of the groups.
//
// +kubebuilder:object:generate=true
package v1
