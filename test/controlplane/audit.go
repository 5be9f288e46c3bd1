// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// maxAuditLine bounds an entry of the audit log, in bytes.
const maxAuditLine = 1 << 20

// AuditLog is an audit log, which may still be written to, or what comes after some time of it.
type AuditLog struct {
	// Path is that of the file.
	Path string

	from int64
}

// FromNow is the part of the log that is written from now on. A whole test package's log takes seconds to decode.
func (l AuditLog) FromNow() (AuditLog, error) {
	info, err := os.Stat(l.Path)
	if err != nil {
		return AuditLog{}, fmt.Errorf("cannot tell the size of the audit log: %w", err)
	}
	return AuditLog{Path: l.Path, from: info.Size()}, nil
}

// Entries returns the wanted entries. A line that lacks one of the words is not decoded, and so not asked about.
func (l AuditLog) Entries(isWanted func(*auditv1.Event) bool, words ...string) ([]auditv1.Event, error) {
	log, err := os.Open(l.Path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the audit log: %w", err)
	}
	defer func() { _ = log.Close() }()
	if _, err := log.Seek(l.from, io.SeekStart); err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}

	var entries []auditv1.Event
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		var entry auditv1.Event
		if !hasAll(lines.Bytes(), words) || json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue // the last line may be incomplete
		}
		if isWanted(&entry) {
			entries = append(entries, entry)
		}
	}
	return entries, lines.Err()
}

func hasAll(line []byte, words []string) bool {
	for _, word := range words {
		if !bytes.Contains(line, []byte(word)) {
			return false
		}
	}
	return true
}
