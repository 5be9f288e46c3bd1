// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// absurd is what no propagation takes that a watch has caused: beyond it a timer
// must have been at work.
const absurd = time.Second

// measure repeats the scene in which a cluster becomes ready, with nothing else
// going on, and leaves everything as it was. It does so only in a check.
func (t *story) measure(ctx context.Context) error {
	if !t.options.check {
		return nil
	}
	what := fmt.Sprintf("the same %d times more", t.options.rounds)
	err := t.printer.during(what, func() error {
		for range t.options.rounds {
			took, err := t.round(ctx)
			if err != nil {
				return fmt.Errorf("round %d: %w", len(t.figures)+1, err)
			}
			t.figures = append(t.figures, took)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.printer.line("  milliseconds: %s", t.figures.list())
	if slowest := slices.Max(t.figures); slowest > absurd {
		return fmt.Errorf("a replica was scheduled only %s after the cluster had become ready", slowest)
	}
	return nil
}

// round takes the cluster away, waits until all has come to rest, and returns how
// long the replica takes to be scheduled when the cluster is back.
func (t *story) round(ctx context.Context) (time.Duration, error) {
	if err := t.setReady("west", false)(ctx); err != nil {
		return 0, err
	}
	if err := t.awaitAll(ctx, placed("team-a", "chat-1", ""), counted("team-a", "chat", 1, 1)); err != nil {
		return 0, err
	}
	if err := t.rest(ctx); err != nil {
		return 0, err
	}
	took, err := t.time(ctx, placed("team-a", "chat-1", "west"), t.setReady("west", true))
	if err != nil {
		return 0, err
	}
	if err := t.await(ctx, counted("team-a", "chat", 2, 0)); err != nil {
		return 0, err
	}
	return took, t.rest(ctx)
}

// samples are measured times.
type samples []time.Duration

// String is the line that a check ends with.
func (s samples) String() string {
	return fmt.Sprintf("propagation median_ms=%.1f p99_ms=%.1f n=%d",
		milliseconds(s.quantile(0.5)), milliseconds(s.quantile(0.99)), len(s))
}

// list are all samples in the order they were taken.
func (s samples) list() string {
	words := make([]string, len(s))
	for i, took := range s {
		words[i] = strconv.FormatFloat(milliseconds(took), 'f', 1, 64)
	}
	return strings.Join(words, " ")
}

// quantile is the smallest sample that at least the given part of all samples
// don't exceed: with few samples the 99th percentile is the largest of them.
// For the middle of an even number it is the mean of the two in the middle.
func (s samples) quantile(part float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := max(int(math.Ceil(part*float64(len(sorted)))), 1)
	if part == 0.5 && len(sorted)%2 == 0 {
		return (sorted[rank-1] + sorted[rank]) / 2
	}
	return sorted[rank-1]
}

func milliseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Millisecond)
}
