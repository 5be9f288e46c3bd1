// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

// upTo is 1 ms, 2 ms and so on to n ms, the largest first.
func upTo(n int) samples {
	var s samples
	for i := n; i > 0; i-- {
		s = append(s, time.Duration(i)*time.Millisecond)
	}
	return s
}

func TestSamplesString(t *testing.T) {
	cases := map[string]struct {
		reason  string
		samples samples
		want    string
	}{
		"None":    {reason: "there is no figure to tell", want: "propagation median_ms=0.0 p99_ms=0.0 n=0"},
		"One":     {reason: "it is every quantile", samples: upTo(1), want: "propagation median_ms=1.0 p99_ms=1.0 n=1"},
		"Odd":     {reason: "one is in the middle", samples: upTo(3), want: "propagation median_ms=2.0 p99_ms=3.0 n=3"},
		"Twenty":  {reason: "two are in the middle, and the slowest is the 99th percentile", samples: upTo(20), want: "propagation median_ms=10.5 p99_ms=20.0 n=20"},
		"Hundred": {reason: "the 99th percentile leaves one out", samples: upTo(100), want: "propagation median_ms=50.5 p99_ms=99.0 n=100"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.samples.String(); got != tc.want {
				t.Errorf("%s\nString(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
