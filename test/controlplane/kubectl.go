// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	crdPrefix = "customresourcedefinition.apiextensions.k8s.io/"
	// kubectlGrace is how long a kubectl that was killed may hold its output open.
	kubectlGrace = 5 * time.Second
)

// KubectlPath is the absolute path of the kubectl that Kubectl runs.
func (c *ControlPlane) KubectlPath() string {
	return c.binaries.kubectl
}

// Kubectl runs kubectl as the admin and returns what it wrote to its standard
// output. An error holds what it wrote to its standard error.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"--kubeconfig=" + c.Kubeconfig(), "--cache-dir=" + filepath.Join(c.dir, "kubectl")}, args...)
	cmd := exec.CommandContext(ctx, c.binaries.kubectl, args...)
	cmd.WaitDelay = kubectlGrace
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args[2:], " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// ApplyKustomize applies the kustomization in dir on the server's side, taking
// over fields that others own, and returns when each CRD in it is Established.
// A kustomization can't hold objects of kinds that its own CRDs define.
func (c *ControlPlane) ApplyKustomize(ctx context.Context, dir string) error {
	applied, err := c.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-o", "name", "-k", dir)
	if err != nil {
		return err
	}
	wait := []string{"wait", "--for=condition=Established", "--timeout=" + processTimeout.String()}
	crds := 0
	for _, object := range strings.Fields(applied) {
		if strings.HasPrefix(object, crdPrefix) {
			wait = append(wait, object)
			crds++
		}
	}
	if crds == 0 {
		return nil
	}
	_, err = c.Kubectl(ctx, wait...)
	return err
}
