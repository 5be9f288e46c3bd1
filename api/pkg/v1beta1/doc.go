// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 has DeploymentRuntimeConfig, and shows Function and FunctionRevision as version v1beta1 does, which differs
// from v1 in nothing but its name. Those two are stored as v1, and the operator reads and writes v1.
//
// +kubebuilder:object:generate=true
// +groupName=pkg.crossplane.io
package v1beta1
