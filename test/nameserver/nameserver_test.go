// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package nameserver_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/crosswatch-io/crosswatch/test/nameserver"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestNamesLeadToTheirAddresses(t *testing.T) {
	s := nameserver.Start(t)
	s.Set("fn.ns", "127.0.0.2", "127.0.0.3")
	s.Set("gone.ns", "127.0.0.4")
	s.Set("gone.ns")

	cases := map[string]struct {
		want    []string
		unknown bool
	}{
		"fn.ns":                   {want: []string{"127.0.0.2", "127.0.0.3"}},
		"fn.ns.svc.cluster.local": {want: []string{"127.0.0.2", "127.0.0.3"}},
		"fn.nsx":                  {unknown: true},
		"gone.ns":                 {unknown: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := net.DefaultResolver.LookupHost(context.Background(), name)
			var failed *net.DNSError
			if (errors.As(err, &failed) && failed.IsNotFound) != tc.unknown || err != nil && !tc.unknown {
				t.Fatalf("LookupHost: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}
