// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	pollInterval = 50 * time.Millisecond
	// unlimitedQPS turns off the client's own rate limit.
	unlimitedQPS = -1

	auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`
	// auditMegabytes keeps a test's whole audit log in one file.
	auditMegabytes = "100000"
)

// startServers runs etcd and the API server, and sets the admin's access. Data
// and certificates get folders of ours, so that they outlive a stop of the API
// server.
func (c *ControlPlane) startServers(ctx context.Context, cfg Config) error {
	etcd := &envtest.Etcd{
		Path:         c.binaries.etcd,
		DataDir:      filepath.Join(c.dir, "etcd"),
		StartTimeout: processTimeout,
		StopTimeout:  processTimeout,
	}
	apiServer := &envtest.APIServer{
		Path:         c.binaries.apiServer,
		CertDir:      filepath.Join(c.dir, "apiserver"),
		StartTimeout: processTimeout,
		StopTimeout:  processTimeout,
	}
	if err := errors.Join(os.MkdirAll(etcd.DataDir, 0o700), os.MkdirAll(apiServer.CertDir, 0o700)); err != nil {
		return fmt.Errorf("cannot create a folder: %w", err)
	}
	if err := c.configureAPIServer(apiServer, cfg); err != nil {
		return err
	}
	etcdLog, err := openLog(c.dir, "etcd")
	if err != nil {
		return err
	}
	defer etcdLog.Close()
	apiServerLog, err := openLog(c.dir, "kube-apiserver")
	if err != nil {
		return err
	}
	defer apiServerLog.Close()
	// The processes hold the files open by themselves once they run.
	etcd.Out, etcd.Err = etcdLog, etcdLog
	apiServer.Out, apiServer.Err = apiServerLog, apiServerLog

	c.servers = &envtest.ControlPlane{Etcd: etcd, APIServer: apiServer, KubectlPath: c.binaries.kubectl}
	if err := c.servers.Start(); err != nil {
		return fmt.Errorf("%w\netcd said: %s\nkube-apiserver said: %s", err, tail(etcdLog.Name()), tail(apiServerLog.Name()))
	}
	return c.authenticate(ctx)
}

func (c *ControlPlane) configureAPIServer(server *envtest.APIServer, cfg Config) error {
	flags := server.Configure()
	// Without it a stop waits a minute for whoever watches.
	flags.Set("shutdown-watch-termination-grace-period", "100ms")
	if cfg.AuditLog != "" {
		log, err := filepath.Abs(cfg.AuditLog)
		if err != nil {
			return fmt.Errorf("cannot resolve the audit log %q: %w", cfg.AuditLog, err)
		}
		policy := filepath.Join(c.dir, "audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return fmt.Errorf("cannot write the audit policy: %w", err)
		}
		flags.Set("audit-policy-file", policy)
		flags.Set("audit-log-path", log)
		flags.Set("audit-log-maxsize", auditMegabytes)
	}
	for name, values := range cfg.APIServerFlags {
		flags.Set(name, values...)
	}
	return nil
}

func (c *ControlPlane) authenticate(ctx context.Context) error {
	admin, err := c.servers.AddUser(
		envtest.User{Name: "admin", Groups: []string{"system:masters"}},
		&rest.Config{QPS: unlimitedQPS},
	)
	if err != nil {
		return fmt.Errorf("cannot make the admin's certificate: %w", err)
	}
	c.admin = admin.Config()
	c.client, err = kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("cannot make the admin's client: %w", err)
	}
	return c.waitForAPIServer(ctx)
}

// waitForAPIServer waits for the default namespace, which the API server
// creates for itself shortly after it has become healthy.
func (c *ControlPlane) waitForAPIServer(ctx context.Context) error {
	return poll(ctx, "the namespace default", func(ctx context.Context) error {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// StopAPIServer ends the API server and waits for it. Etcd goes on, with its
// data, and the controller manager tries to reconnect.
func (c *ControlPlane) StopAPIServer() error {
	if err := c.servers.APIServer.Stop(); err != nil {
		return fmt.Errorf("cannot stop kube-apiserver: %w", err)
	}
	return nil
}

// StartAPIServer starts an API server that was stopped, at the same address,
// with the same data, certificates and tokens. It returns when that serves.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	log, err := openLog(c.dir, "kube-apiserver")
	if err != nil {
		return err
	}
	defer log.Close()
	c.servers.APIServer.Out, c.servers.APIServer.Err = log, log
	if err := c.servers.APIServer.Start(); err != nil {
		return fmt.Errorf("cannot start kube-apiserver: %w: it said: %s", err, tail(log.Name()))
	}
	return c.waitForAPIServer(ctx)
}

// poll asks until try succeeds, and names what was awaited and the last answer
// if it does not within processTimeout.
func poll(ctx context.Context, awaited string, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, processTimeout, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waited in vain for %s: %w", awaited, errors.Join(err, last))
	}
	return nil
}
