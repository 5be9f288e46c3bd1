// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the kinds by which people define composite resources (XRs) and how they are composed:
// CompositeResourceDefinition, Composition and CompositionRevision.
//
// +kubebuilder:object:generate=true
// +groupName=apiextensions.crossplane.io
package v1
