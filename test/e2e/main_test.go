// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crosswatch-io/crosswatch/test/controlplane"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

// testCluster is the cluster that all tests of the package share.
type testCluster struct {
	*installation.Installation

	auditLog controlplane.AuditLog
	refusals expectedRefusals
	shared   sets.Set[string]       // the XR kinds that tests share, as far as there were tests that do
	binary   func() (string, error) // builds the operator when it is first called
}

var cluster *testCluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// The operator logs by itself; what controller-runtime says besides is noise.
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "crosswatch-e2e-")
	if err != nil {
		return complain(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx := context.Background()
	auditLog := controlplane.AuditLog{Path: filepath.Join(dir, "audit.log")}
	cp, err := controlplane.Start(ctx, controlplane.Config{
		AuditLog: auditLog.Path, ControllerManager: true,
		// By default, it deletes the objects of a collection one after the other.
		APIServerFlags: map[string][]string{"delete-collection-workers": {"8"}},
	})
	if err != nil {
		return complain(err)
	}
	defer func() {
		if err := cp.Stop(); err != nil {
			complain(err)
		}
	}()
	installed, err := installation.Install(ctx, cp, "../../config/default", "manifests")
	if err != nil {
		return complain(err)
	}
	cluster = &testCluster{
		Installation: installed, auditLog: auditLog, shared: sets.New[string](),
		binary: sync.OnceValues(func() (string, error) { return buildOperator(ctx, dir) }),
	}
	code := m.Run()
	refused, err := cluster.unexpectedRefusals()
	if err != nil {
		return complain(err)
	}
	for _, request := range refused {
		code = complain(fmt.Errorf("the operator was forbidden what it does by itself: %s", request))
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
