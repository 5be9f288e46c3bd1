// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Seed returns the environment's SEED, or a new one.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	text, ok := os.LookupEnv("SEED")
	if !ok {
		return uint64(time.Now().UnixNano())
	}
	var seed uint64
	if _, err := fmt.Sscan(text, &seed); err != nil {
		tb.Fatalf("SEED is not a number: %v", err)
	}
	return seed
}

// Time returns the environment's SOAK; without it the test is skipped.
func Time(tb testing.TB) time.Duration {
	tb.Helper()
	text, ok := os.LookupEnv("SOAK")
	if !ok {
		tb.Skip("set SOAK to how long it should take, or run make test-soak")
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		tb.Fatalf("SOAK is not a duration: %v", err)
	}
	return d
}

// Report prints what came of a soak.
func Report(changes, missed int, seed uint64) {
	fmt.Printf("soak changes=%d missed=%d seed=%d\n", changes, missed, seed)
}
