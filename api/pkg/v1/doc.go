// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the kinds by which functions are installed: Function and FunctionRevision.
//
// +kubebuilder:object:generate=true
// +groupName=pkg.crossplane.io
package v1
