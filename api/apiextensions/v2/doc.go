// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package v2 shows CompositeResourceDefinition as version v2 does: without the LegacyCluster scope and what comes with it.
// Objects are stored as v1, and the operator reads and writes v1.
//
// +kubebuilder:object:generate=true
// +groupName=apiextensions.crossplane.io
package v2
