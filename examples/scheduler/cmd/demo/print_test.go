// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPrinterShowsProgress(t *testing.T) {
	lasting := func(d time.Duration, err error) func() error {
		return func() error { <-time.After(d); return err }
	}
	cases := map[string]struct {
		reason string
		do     func() error
		want   string
	}{
		"Short":  {reason: "what is done at once needs no sign of life", do: lasting(500*time.Millisecond, nil), want: "  work  0.5 s\n"},
		"Long":   {reason: "one dot a second while it lasts", do: lasting(3500*time.Millisecond, nil), want: "  work ... 3.5 s\n"},
		"Failed": {reason: "a failure ends the line, its text comes later", do: lasting(0, errors.New("broken")), want: "  work  failed\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &strings.Builder{}
				_ = newPrinter(out).during("work", tc.do)
				if diff := cmp.Diff(tc.want, out.String()); diff != "" {
					t.Errorf("%s\nprinted: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

func TestPrinterScene(t *testing.T) {
	out := &strings.Builder{}
	took, err := newPrinter(out).scene("A cluster comes.", "a replica goes there", func() (time.Duration, error) {
		return 12340 * time.Microsecond, nil
	})
	if err != nil || took != 12340*time.Microsecond {
		t.Errorf("scene(...): got %s, error %v", took, err)
	}
	if diff := cmp.Diff("  A cluster comes.\n    -> a replica goes there after 12.3 ms\n", out.String()); diff != "" {
		t.Errorf("printed: -want, +got:\n%s", diff)
	}
}
