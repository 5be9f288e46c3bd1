// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
)

// clients are those for kinds that are known only while the operator runs. They share the manager's connections.
type clients struct {
	dynamic   *dynamic.DynamicClient
	metadata  metadata.Interface
	discovery *discovery.DiscoveryClient
}

func newClients(mgr ctrl.Manager) (clients, error) {
	cfg, http := mgr.GetConfig(), mgr.GetHTTPClient()
	dyn, dynamicErr := dynamic.NewForConfigAndClient(cfg, http)
	meta, metadataErr := metadata.NewForConfigAndClient(cfg, http)
	disco, discoveryErr := discovery.NewDiscoveryClientForConfigAndClient(cfg, http)
	if err := errors.Join(dynamicErr, metadataErr, discoveryErr); err != nil {
		return clients{}, fmt.Errorf("cannot make the clients of XRs and what they depend on: %w", err)
	}
	return clients{dynamic: dyn, metadata: meta, discovery: disco}, nil
}
