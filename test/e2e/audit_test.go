// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	operatorUser = "system:serviceaccount:" + operatorNamespace + ":" + operatorServiceAccount
	// maxAuditLine bounds an entry of the audit log, in bytes.
	maxAuditLine = 1 << 20
)

// expectedRefusals are the resources that tests have the operator ask for in
// vain, on purpose.
type expectedRefusals struct {
	mu        sync.Mutex
	resources map[string]bool
}

// provokesRefusals tells that the test has the operator ask for a resource that
// it has no access to.
func (w *world) provokesRefusals(resource string) {
	e := &cluster.refusals
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.resources == nil {
		e.resources = map[string]bool{}
	}
	e.resources[resource] = true
}

// unexpectedRefusals returns the requests that the API server forbade the
// operator, but for those that tests provoked: what the operator does by itself
// it must be allowed to.
func (i *installation) unexpectedRefusals() ([]string, error) {
	log, err := os.Open(i.auditLog)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()

	var refused []string
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		var entry auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return nil, fmt.Errorf("cannot read the audit log: %w", err)
		}
		if entry.User.Username != operatorUser || entry.ResponseStatus == nil || entry.ResponseStatus.Code != http.StatusForbidden {
			continue
		}
		if entry.ObjectRef == nil || !i.refusals.resources[entry.ObjectRef.Resource] {
			refused = append(refused, fmt.Sprintf("%s %s: %s", entry.Verb, entry.RequestURI, entry.ResponseStatus.Message))
		}
	}
	return refused, lines.Err()
}
