// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a Kubernetes control plane for tests and the demo:
// etcd, kube-apiserver with RBAC and, where asked for, kube-controller-manager
// with the few controllers without which owner references delete nothing,
// namespaces never finish and aggregated roles stay empty.
//
//	plane, err := controlplane.Start(ctx, controlplane.Config{ControllerManager: true})
//	if err != nil {
//		return err
//	}
//	defer plane.Stop()
//
// Everything listens on loopback, on ports that were free a moment before, and
// several control planes can run side by side. The binaries come from the
// folder that KUBEBUILDER_ASSETS names, else from bin/k8s, where `make
// controlplane` puts them.
//
// Two delays are Kubernetes' own and have no flag: a namespace is finalized
// five seconds after its deletion, and the garbage collector learns of a new
// kind within thirty (see [ControlPlane.RestartControllerManager]).
package controlplane
