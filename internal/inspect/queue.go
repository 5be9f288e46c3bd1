// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"sync"

	"github.com/crosswatch-io/crosswatch/internal/function"
)

const (
	// maxRounds is how many rounds wait to be written at most.
	maxRounds = 1024
	// maxBytes is how much those rounds may take.
	maxBytes = 16 << 20
	// roundBytes is what a round takes beyond its messages.
	roundBytes = 512
)

// A queue holds the rounds that are still to be written, oldest first, but for
// the one that is being written. It is safe for concurrent use.
type queue struct {
	// arrived has a token if something was put since the last look.
	arrived chan struct{}

	mu      sync.Mutex // guards all below; held for no more than moving rounds
	rounds  []round
	bytes   int
	dropped uint64 // since the last take
	closed  bool   // what is put from now on is dropped
}

// A round that waits to be written.
type round struct {
	function.Inspection

	size int

	// tooLarge tells that request and response were left out: they alone are
	// more than the queue may hold.
	tooLarge bool
}

// What take returns: how many rounds were dropped, and the one that comes after
// those, which is nil if there is none yet.
type taken struct {
	dropped uint64
	round   *round
}

func newQueue() *queue { return &queue{arrived: make(chan struct{}, 1)} }

// put the round last, and drop the oldest for which there is no room then.
func (q *queue) put(i function.Inspection) {
	r := newRound(i)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.countDropped(1)
		return
	}
	q.rounds = append(q.rounds, r)
	q.bytes += r.size
	for len(q.rounds) > maxRounds || q.bytes > maxBytes {
		q.removeFirst()
		q.countDropped(1)
	}
	select {
	case q.arrived <- struct{}{}:
	default:
	}
}

func newRound(i function.Inspection) round {
	r := round{Inspection: i}
	if r.size = sizeOf(i); r.size > maxBytes {
		r.Request, r.Response, r.tooLarge = nil, nil, true
		r.size = sizeOf(r.Inspection)
	}
	return r
}

// sizeOf is what a round takes, in bytes.
func sizeOf(i function.Inspection) int {
	size := roundBytes + len(i.Response)
	if i.Request != nil {
		size += i.Request.Size()
	}
	return size
}

// next waits until there is something to take. Once the context has ended nothing
// can be put any more, and next returns false when nothing is left.
func (q *queue) next(ctx context.Context) (taken, bool) {
	for ctx.Err() == nil {
		if t, ok := q.take(); ok {
			return t, true
		}
		select {
		case <-q.arrived:
		case <-ctx.Done():
		}
	}
	q.close()
	return q.take()
}

func (q *queue) take() (taken, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := taken{dropped: q.dropped}
	q.dropped = 0
	if len(q.rounds) > 0 {
		first := q.removeFirst()
		t.round = &first
	}
	return t, t.dropped > 0 || t.round != nil
}

// close drops whatever is put from now on.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// clear drops what is left.
func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.countDropped(len(q.rounds))
	q.rounds, q.bytes = nil, 0
}

// removeFirst lets go of the messages of the round that it returns. q.mu is held.
func (q *queue) removeFirst() round {
	first := q.rounds[0]
	q.rounds[0] = round{}
	q.rounds = q.rounds[1:]
	q.bytes -= first.size
	return first
}

// countDropped is called with q.mu held.
func (q *queue) countDropped(n int) {
	q.dropped += uint64(n)
	droppedTotal.Add(float64(n))
}
