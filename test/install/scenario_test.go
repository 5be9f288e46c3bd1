// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	root         = "../.."
	operatorUser = "system:serviceaccount:" + namespace + ":" + name
	// maxAuditLine bounds an entry of the audit log, in bytes.
	maxAuditLine = 1 << 20
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

	log, err := os.Open(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	requests := 0
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		var entry auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.User.Username != operatorUser {
			continue
		}
		requests++
		if entry.ResponseStatus != nil && entry.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("forbidden: %s %s: %s", entry.Verb, entry.RequestURI, entry.ResponseStatus.Message)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if requests == 0 {
		t.Error("the audit log has no request of the operator")
	}
	t.Logf("%d requests of the operator", requests)
}
