// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	leaseName = "crosswatch-leader-election"
	// minLeaseTimeout is the shortest time that a request for the lease is given.
	minLeaseTimeout = time.Second
)

// newIdentity returns the name of this replica: that of its pod, which is the host's, and something that a pod of the same name
// before it had not.
func newIdentity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("cannot find out the host's name, which is part of this replica's identity: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// newLock returns the lease that the leader holds. The manager would make the same, and keep the identity to itself. It records no
// Events of who leads: the lease and the DependencyWatchStatus "cluster" say so.
func newLock(cfg *rest.Config, o Options, identity string) (resourcelock.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent += "/leader-election"
	// A request that hangs must leave time for another before the lease is lost.
	cfg.Timeout = max(o.LeaderElectRenewDeadline/2, minLeaseTimeout)
	client, err := coordinationv1.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make the client for lease %q: %w", leaseName, err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: leaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, nil
}
