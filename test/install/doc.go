// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package install tests the manifests in config as a cluster takes them: each
// kustomization is rendered and applied by kubectl, the pods that the Deployments
// ask for keep to the namespace's pod security level, selectors select what they
// are meant to, and the API server files the operator's lease where it is said to.
package install
