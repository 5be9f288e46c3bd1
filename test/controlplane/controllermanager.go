// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startControllerManager runs the controllers that tests can't do without, and
// returns when two of them have done their first work. It serves nothing.
func (c *ControlPlane) startControllerManager(ctx context.Context) error {
	manager, err := startProcess(c.dir, c.binaries.controllerManager,
		"--controllers=garbage-collector-controller,namespace-controller,"+
			"clusterrole-aggregation-controller,serviceaccount-controller",
		"--kubeconfig="+c.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	)
	if err != nil {
		return err
	}
	c.manager = manager
	return c.waitForControllerManager(ctx)
}

func (c *ControlPlane) waitForControllerManager(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	try := func(ctx context.Context) error {
		if err := c.manager.ended(); err != nil {
			cancel(err)
		}
		return c.controllersWorked(ctx)
	}
	if err := poll(ctx, "kube-controller-manager's first work", try); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// controllersWorked is an error unless the default namespace has its service
// account and a bootstrap role that aggregates others has its rules.
func (c *ControlPlane) controllersWorked(ctx context.Context) error {
	if _, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return err
	}
	role, err := c.client.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(role.Rules) == 0 {
		return errors.New("cluster role \"view\" has no rules yet")
	}
	return nil
}

// RestartControllerManager makes the garbage collector see each kind that is
// served now. It does so by itself too, but up to half a minute late, during
// which it neither deletes dependants of a new kind nor completes foreground
// deletions.
func (c *ControlPlane) RestartControllerManager(ctx context.Context) error {
	if c.manager == nil {
		return errors.New("cannot restart kube-controller-manager: it was not started: set Config.ControllerManager")
	}
	if err := c.manager.stop(); err != nil {
		return fmt.Errorf("cannot restart kube-controller-manager: %w", err)
	}
	return c.startControllerManager(ctx)
}
