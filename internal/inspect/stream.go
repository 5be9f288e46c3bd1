// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crosswatch-io/crosswatch/internal/function"
)

const (
	// flushTime bounds how long a write may take once the operator stops.
	flushTime = 2 * time.Second

	// A destination that fails is tried again after these times.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second

	// keptBuffer is how large a buffer is kept for the next line.
	keptBuffer = 1 << 20
)

// A Stream writes rounds to a destination, secrets redacted, while Start runs.
// It is a function.Inspector and a runnable of the manager.
type Stream struct {
	to    Destination
	log   logr.Logger
	queue *queue

	// The goroutine of Start alone uses what follows.

	// lines are what is being written: at most one round, and the gap before it.
	// What fails to be written is written again to what is opened next.
	lines bytes.Buffer
	// holdsRound tells that there is a round among them, and not a gap alone.
	holdsRound bool
	// failing tells that the last write, or the attempt to open, failed.
	failing bool
	retries wait.Backoff
}

// NewStream returns a Stream that writes once it is started, what was inspected
// before included.
func NewStream(to Destination, log logr.Logger) *Stream {
	return &Stream{to: to, log: log.WithValues("destination", to.String()), queue: newQueue(), retries: newRetries()}
}

func newRetries() wait.Backoff {
	return wait.Backoff{Duration: firstRetry, Factor: 2, Cap: lastRetry, Steps: math.MaxInt}
}

// Inspect queues the round. It is safe for concurrent use, and waits for nothing.
func (s *Stream) Inspect(i function.Inspection) { s.queue.put(i) }

// NeedLeaderElection is false: a replica shows what it does itself.
func (s *Stream) NeedLeaderElection() bool { return false }

// Start writes until the context ends, and then for a short time what is queued.
// It returns no error: who looks into pipelines must not stop them.
func (s *Stream) Start(ctx context.Context) error {
	defer s.close()
	for {
		err := s.serve(ctx)
		if err == nil {
			return nil
		}
		s.failed(err)
		if ctx.Err() != nil {
			return nil
		}
		select {
		case <-time.After(s.retries.Step()):
		case <-ctx.Done():
		}
	}
}

// serve opens the destination and writes to it, until that fails or the context
// has ended and nothing is queued any more.
func (s *Stream) serve(ctx context.Context) error {
	out, err := s.to.open(ctx)
	if err != nil {
		return err
	}
	defer out.Close()
	// A viewer that doesn't read holds the write up, and must not hold up the end.
	// A file has no deadline.
	stop := context.AfterFunc(ctx, func() { _ = out.SetWriteDeadline(time.Now().Add(flushTime)) })
	defer stop()
	for s.fill(ctx) {
		if _, err := out.Write(s.lines.Bytes()); err != nil {
			return fmt.Errorf("cannot write: %w", err)
		}
		s.wrote()
	}
	return nil
}

// fill makes sure that there are lines to write. It returns false if there are
// none and the context has ended.
func (s *Stream) fill(ctx context.Context) bool {
	for s.lines.Len() == 0 {
		next, ok := s.queue.next(ctx)
		if !ok {
			return false
		}
		s.holdsRound = next.round != nil
		if err := next.write(&s.lines); err != nil {
			s.lines.Reset()
			s.log.Error(err, "Cannot encode a round of a function")
			droppedTotal.Inc()
		}
	}
	return true
}

func (s *Stream) wrote() {
	if s.failing {
		s.log.Info("Writing rounds of functions again")
	}
	s.failing, s.retries = false, newRetries()
	if s.lines.Cap() > keptBuffer {
		s.lines = bytes.Buffer{}
	}
	s.lines.Reset()
}

// failed logs the first failure of several in a row.
func (s *Stream) failed(err error) {
	if !s.failing {
		s.log.Error(err, "Cannot write rounds of functions; trying again")
	}
	s.failing = true
}

// close gives up what could not be written.
func (s *Stream) close() {
	if s.lines.Len() > 0 && s.holdsRound {
		droppedTotal.Inc()
	}
	s.queue.close()
	s.queue.clear()
}
