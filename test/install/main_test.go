// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crosswatch-io/crosswatch/test/controlplane"
)

const (
	configDir = "../../config"
	namespace = "crosswatch-system"
	name      = "crosswatch"
)

// All tests share a cluster on which config/default is installed.
var (
	plane  *controlplane.ControlPlane
	client kubernetes.Interface
)

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	ctx := context.Background()
	var err error
	plane, err = controlplane.Start(ctx, controlplane.Config{
		ControllerManager: true,
		// Pods get their ServiceAccount's token only from this plugin.
		APIServerFlags: map[string][]string{"disable-admission-plugins": nil},
	})
	if err != nil {
		return complain(err)
	}
	defer func() {
		if err := plane.Stop(); err != nil {
			complain(err)
		}
	}()
	if err := install(ctx); err != nil {
		return complain(err)
	}
	return m.Run()
}

// install does what the README says. That is one command on the client's side, so
// that no object may be too large for kubectl's annotation.
func install(ctx context.Context) error {
	var err error
	client, err = kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return err
	}
	if _, err := plane.Kubectl(ctx, "apply", "-k", configDir+"/default"); err != nil {
		return err
	}
	_, err = plane.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=90s", "crd", "--all")
	return err
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
