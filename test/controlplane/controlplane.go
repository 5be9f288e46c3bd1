// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// processTimeout bounds the start and the stop of one process. It is generous,
// because a machine that compiles meanwhile is slow.
const processTimeout = 90 * time.Second

// Config says what to run. The zero value is etcd and an API server.
type Config struct {
	// Dir keeps etcd's data, certificates, the admin's kubeconfig and a log of
	// each process. It is created if need be, must not be in use by another
	// control plane, and stays after Stop. Empty: a temporary folder that
	// Stop removes.
	Dir string

	// ControllerManager runs kube-controller-manager with the controllers for
	// garbage collection, namespaces, aggregated cluster roles and service
	// accounts.
	ControllerManager bool

	// AuditLog is the file to which the API server writes one JSON line for
	// each stage of each request but its receipt, at level Metadata. Empty:
	// no audit.
	AuditLog string

	// APIServerFlags are set on kube-apiserver, in place of the defaults of
	// the same name. Names carry no leading dashes.
	APIServerFlags map[string][]string
}

// ControlPlane is a running control plane. Its methods may be called by several
// goroutines at once, except those that stop or start a process.
type ControlPlane struct {
	dir      string
	binaries binaries // etcd, apiServer and controllerManager by way of their launchers
	guard    *guard
	servers  *envtest.ControlPlane
	admin    *rest.Config
	client   kubernetes.Interface
	manager  *process // nil without a controller manager
	stop     func() error
}

// Start runs a control plane until Stop is called; ctx bounds the start alone.
// When it returns, the API server serves, its bootstrap roles are there and, if
// there is a controller manager, that has done its first work. If it fails,
// nothing is left running; nor is it if our process dies before it calls Stop.
func Start(ctx context.Context, cfg Config) (*ControlPlane, error) {
	found, err := findBinaries(cfg.ControllerManager)
	if err != nil {
		return nil, fmt.Errorf("cannot start the control plane: %w", err)
	}
	dir, err := makeDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot start the control plane: %w", err)
	}
	c := &ControlPlane{dir: dir, binaries: found}
	c.stop = sync.OnceValue(func() error { return c.shutDown(cfg.Dir == "") })
	if err := c.start(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the control plane: %w", err), c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, cfg Config) error {
	if err := c.startGuard(cfg); err != nil {
		return err
	}
	if err := c.startServers(ctx, cfg); err != nil {
		return err
	}
	if err := c.WriteKubeconfig(c.Kubeconfig(), c.admin); err != nil {
		return err
	}
	if !cfg.ControllerManager {
		return nil
	}
	return c.startControllerManager(ctx)
}

// startGuard makes every later process one that the guard ends if we can't.
func (c *ControlPlane) startGuard(cfg Config) error {
	var leftovers string
	if cfg.Dir == "" {
		leftovers = c.dir
	}
	var err error
	c.guard, err = startGuard(filepath.Join(c.dir, "run"), leftovers)
	if err != nil {
		return err
	}
	for _, path := range []*string{&c.binaries.etcd, &c.binaries.apiServer, &c.binaries.controllerManager} {
		if *path == "" {
			continue
		}
		*path, err = c.guard.launcher(*path)
		if err != nil {
			return err
		}
	}
	return nil
}

// Stop ends every process, waits for it, and removes the temporary folder. Later
// calls do nothing and return what the first returned.
func (c *ControlPlane) Stop() error {
	return c.stop()
}

func (c *ControlPlane) shutDown(removeDir bool) error {
	var errs []error
	if c.manager != nil {
		errs = append(errs, c.manager.stop())
	}
	if c.servers != nil {
		errs = append(errs, c.servers.Stop())
	}
	if c.guard != nil {
		errs = append(errs, c.guard.stop())
	}
	if removeDir {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot stop the control plane: %w", err)
	}
	return nil
}

func makeDir(dir string) (string, error) {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "crosswatch-controlplane-")
		if err != nil {
			return "", fmt.Errorf("cannot create a temporary folder: %w", err)
		}
		return temporary, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot resolve the folder %q: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot create the folder %q: %w", dir, err)
	}
	return dir, nil
}
