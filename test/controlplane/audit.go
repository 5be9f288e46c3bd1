// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// maxAuditLine bounds an entry of the audit log, in bytes.
const maxAuditLine = 1 << 20

// Audit returns the wanted entries of an audit log, which may still be written to.
func Audit(path string, isWanted func(*auditv1.Event) bool) ([]auditv1.Event, error) {
	log, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the audit log: %w", err)
	}
	defer func() { _ = log.Close() }()

	var entries []auditv1.Event
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		var entry auditv1.Event
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue // the last line may be incomplete
		}
		if isWanted(&entry) {
			entries = append(entries, entry)
		}
	}
	return entries, lines.Err()
}
