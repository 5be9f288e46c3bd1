// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
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

// What hurries the requests for the lease must not hurry a watch.
func TestTheLockHasAConfigurationOfItsOwn(t *testing.T) {
	cfg := clientConfig(&rest.Config{Host: "https://127.0.0.1:1"})
	agent, timeout := cfg.UserAgent, cfg.Timeout
	lock, err := newLock(cfg, NewOptions(), "replica")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.UserAgent != agent || cfg.Timeout != timeout {
		t.Errorf("the lock changed the clients' configuration to user agent %q and timeout %s", cfg.UserAgent, cfg.Timeout)
	}
	got := []string{lock.Identity(), lock.Describe()}
	if diff := cmp.Diff([]string{"replica", "crosswatch-system/crosswatch-leader-election"}, got); diff != "" {
		t.Errorf("identity and lease (-want +got):\n%s", diff)
	}
}
