// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// takeAll empties the queue.
func takeAll(q *queue) []shown {
	var all []shown
	for {
		t, ok := q.take()
		if !ok {
			return all
		}
		if t.dropped > 0 {
			all = append(all, shown{Dropped: int(t.dropped)})
		}
		if t.round != nil {
			all = append(all, shown{Round: t.round.Round, TooLarge: t.round.tooLarge})
		}
	}
}

func TestAFullQueueDropsTheOldest(t *testing.T) {
	const quarter = maxBytes/4 - 1000
	cases := map[string]struct {
		sizes []int // of the rounds, which are numbered from zero
		want  []shown
	}{
		"NotFull":   {sizes: []int{1, 1}, want: []shown{{Round: 0}, {Round: 1}}},
		"Bytes":     {sizes: []int{1, quarter, quarter, quarter, quarter, 2000}, want: []shown{{Dropped: 2}, {Round: 2}, {Round: 3}, {Round: 4}, {Round: 5}}},
		"TooLarge":  {sizes: []int{1, maxBytes, 1}, want: []shown{{Round: 0}, {Round: 1, TooLarge: true}, {Round: 2}}},
		"NothingIn": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := newQueue()
			for n, bytes := range tc.sizes {
				q.put(roundOf(t, n, bytes))
			}
			if diff := cmp.Diff(tc.want, takeAll(q)); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
			if q.bytes != 0 {
				t.Errorf("the empty queue believes to hold %d bytes", q.bytes)
			}
		})
	}
	t.Run("Rounds", func(t *testing.T) {
		q := newQueue()
		for n := range maxRounds + 7 {
			q.put(roundOf(t, n, 1))
		}
		got := takeAll(q)
		if diff := cmp.Diff([]shown{{Dropped: 7}, {Round: 7}}, got[:2]); diff != "" || len(got) != 1+maxRounds {
			t.Errorf("%d are taken, first (-want +got):\n%s", len(got), diff)
		}
	})
}

func TestARoundThatIsTooLargeKeepsItsXR(t *testing.T) {
	r := newRound(roundOf(t, 1, maxBytes))
	got, err := lineOf(&r)
	if err != nil {
		t.Fatal(err)
	}
	if got.XR.Kind != "Greeting" || got.XR.APIVersion != "example.org/v1" || got.Request != nil {
		t.Errorf("want the XR's kind without the request, got %+v", got)
	}
}
