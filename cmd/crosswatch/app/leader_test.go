// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"strings"
	"testing"
)

func TestIdentitiesShareTheHostAndDiffer(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 2 {
		identity, err := newIdentity()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(identity, host+"_") || seen[identity] {
			t.Errorf("identity %q: want the host %q and something that no other has, besides %v", identity, host, seen)
		}
		seen[identity] = true
	}
}
