// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds EnvironmentConfig: plain data that pipelines require.
//
// +kubebuilder:object:generate=true
// +groupName=apiextensions.crossplane.io
package v1beta1
