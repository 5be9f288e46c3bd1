// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the operator's own kinds: what it says to people about the dependencies that it tracks.
//
// +kubebuilder:object:generate=true
// +groupName=crosswatch.io
package v1alpha1
