// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/crosswatch-io/crosswatch/test/controlplane"
)

const (
	root         = "../.."
	operatorUser = "system:serviceaccount:" + namespace + ":" + name
)

// build builds a program as make does, and returns its path.
func build(t *testing.T, dir, program string) string {
	t.Helper()
	binary := filepath.Join(dir, filepath.Base(program))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, program)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", program, err, out)
	}
	return binary
}

// TestTheDefaultInstallationPlaysTheDemo tells the demo's story with what
// config/default installs, by an operator under the ServiceAccount that it makes,
// and then looks for anything that the API server forbade the operator.
func TestTheDefaultInstallationPlaysTheDemo(t *testing.T) {
	dir := t.TempDir()
	auditLog := filepath.Join(dir, "audit.log")
	demo := exec.CommandContext(t.Context(), build(t, dir, "./examples/scheduler/cmd/demo"), "--check", "--rounds=3",
		"--operator="+build(t, dir, "./cmd/crosswatch"), "--config=config/default", "--audit-log="+auditLog)
	demo.Dir = root
	if out, err := demo.CombinedOutput(); err != nil {
		t.Fatalf("the demo failed: %v\n%s", err, out)
	}

	log := controlplane.AuditLog{Path: auditLog}
	requests, err := log.Entries(func(e *auditv1.Event) bool { return e.User.Username == operatorUser })
	if err != nil {
		t.Fatal(err)
	}
	if len(requests) == 0 {
		t.Error("the audit log has no request of the operator")
	}
	for _, entry := range requests {
		if entry.ResponseStatus != nil && entry.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("forbidden: %s %s: %s", entry.Verb, entry.RequestURI, entry.ResponseStatus.Message)
		}
	}
	t.Logf("%d requests of the operator", len(requests))
}
