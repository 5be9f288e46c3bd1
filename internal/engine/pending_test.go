// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// asked is a queue that keeps an XR once, with the earliest time and the highest
// priority that anybody asked for.
type asked map[types.NamespacedName]struct {
	at       time.Time
	priority int
}

func (q asked) add(xr types.NamespacedName, at time.Time, priority int) {
	item, ok := q[xr]
	if !ok {
		item.at, item.priority = at, priority
	}
	if at.Before(item.at) {
		item.at = at
	}
	item.priority = max(item.priority, priority)
	q[xr] = item
}

func TestAQueueThatIsNotAskedForWhatItKnowsHasTheSameInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pending, every, news := engine.NewPending(), asked{}, asked{}
		start := time.Now()
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			xr := types.NamespacedName{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "xr")}
			if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
				pending.Begin(xr)
				delete(every, xr)
				delete(news, xr)
				continue
			}
			at := start.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "at")) * time.Second)
			priority := rapid.IntRange(-3, 0).Draw(t, "priority")
			before := every[xr]
			_, there := every[xr]
			every.add(xr, at, priority)
			isNews := !there || every[xr] != before
			if got := pending.Ask(xr, at, priority); got != isNews {
				t.Fatalf("the queue is asked: %t, which is news: %t", got, isNews)
			}
			if isNews {
				news.add(xr, at, priority)
			}
			if news[xr] != every[xr] {
				t.Fatalf("the queue has %v, want %v", news[xr], every[xr])
			}
		}
	})
}
