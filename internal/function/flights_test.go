// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// A counter is a Caller for many goroutines, which counts.
type counter struct {
	answer func(ctx context.Context) (*fnv1.RunFunctionResponse, error)
	calls  atomic.Int64
}

func (c *counter) Call(ctx context.Context, _ string, _ *Request) (*Response, error) {
	c.calls.Add(1)
	resp, err := c.answer(ctx)
	if err != nil {
		return nil, err
	}
	encoded, err := proto.Marshal(resp)
	if err != nil {
		return nil, err
	}
	return NewResponse(encoded)
}

func (c *counter) runner(t *testing.T) *Runner {
	t.Helper()
	k := newKeeper(t, nil)
	k.config.Caller = c
	return k.Runner
}

// atOnce runs the same step in several goroutines.
func atOnce(t *testing.T, runner *Runner, n int) []error {
	t.Helper()
	in := newCluster()
	errs := make([]error, n)
	answers := make([]*Answer, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { answers[i], errs[i] = runner.Run(t.Context(), step(in)) })
	}
	running.Wait()
	for i, a := range answers {
		if errs[i] != nil {
			continue
		}
		// Were it shared, the race detector and the others would notice.
		a.Response.Context.Fields["mine"] = structpb.NewNumberValue(float64(i))
	}
	return errs
}

func lasting(ttl time.Duration) *fnv1.RunFunctionResponse {
	return &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Ttl: durationpb.New(ttl)},
		Context: &structpb.Struct{Fields: map[string]*structpb.Value{"n": structpb.NewNumberValue(1)}},
	}
}

func TestConcurrentIdenticalRequestsAreOneCall(t *testing.T) {
	const n = 16
	fn := &counter{answer: func(context.Context) (*fnv1.RunFunctionResponse, error) { return lasting(time.Hour), nil }}
	for _, err := range atOnce(t, fn.runner(t), n) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := fn.calls.Load(); got != 1 {
		t.Errorf("%d identical requests made %d calls, want 1", n, got)
	}
}

// A TTL of zero says that even a moment later the answer may be another.
func TestConcurrentIdenticalRequestsWithoutATTLAreCallsOfTheirOwn(t *testing.T) {
	const n = 16
	fn := &counter{answer: func(context.Context) (*fnv1.RunFunctionResponse, error) { return lasting(0), nil }}
	for _, err := range atOnce(t, fn.runner(t), n) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := fn.calls.Load(); got != n {
		t.Errorf("%d requests made %d calls, want one each", n, got)
	}
}

func TestAFailureIsToldToAllWhoAskedAtOnce(t *testing.T) {
	failure := errors.New("no")
	fn := &counter{answer: func(context.Context) (*fnv1.RunFunctionResponse, error) { return nil, failure }}
	for _, err := range atOnce(t, fn.runner(t), 16) {
		if !errors.Is(err, failure) {
			t.Errorf("got error %v, want %v", err, failure)
		}
	}
}

// Who is told to stop doesn't take along who asked the same.
func TestWhoIsToldToStopFailsAlone(t *testing.T) {
	first := make(chan struct{})
	fn := &counter{}
	fn.answer = func(ctx context.Context) (*fnv1.RunFunctionResponse, error) {
		if fn.calls.Load() > 1 {
			return lasting(time.Hour), nil
		}
		close(first)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	runner := fn.runner(t)
	in := newCluster()

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var stopped, other error
	running.Go(func() { _, stopped = runner.Run(ctx, step(in)) })
	<-first
	running.Go(func() { _, other = runner.Run(t.Context(), step(in)) })
	cancel()
	running.Wait()
	if !errors.Is(stopped, context.Canceled) || other != nil {
		t.Errorf("got %v and %v, want only the first to fail", stopped, other)
	}
}

// A panic while calling leaves nobody waiting.
func TestAPanicKeepsNobodyWaiting(t *testing.T) {
	fn := &counter{}
	fn.answer = func(context.Context) (*fnv1.RunFunctionResponse, error) {
		if fn.calls.Load() == 1 {
			panic("at the first call")
		}
		return lasting(time.Hour), nil
	}
	runner := fn.runner(t)
	func() {
		defer func() { _ = recover() }()
		_, _ = runner.Run(t.Context(), step(newCluster()))
	}()
	if _, err := runner.Run(t.Context(), step(newCluster())); err != nil {
		t.Error(err)
	}
}

// In these bubbles of time all that can wait does, so it is known who shares what.
func TestFlights(t *testing.T) {
	good := answered{Response: &Response{message: &fnv1.RunFunctionResponse{}, encoded: []byte{}}}
	cases := map[string]struct {
		expires bool // the answer may be reused
		err     error
		cancel  bool // whoever calls is told to stop
		calls   int64
		failed  int64 // of three who ask
	}{
		"Shared":     {expires: true, calls: 1},
		"NotToShare": {calls: 3},
		"Failed":     {err: errors.New("no"), calls: 1, failed: 3},
		"Abandoned":  {expires: true, cancel: true, calls: 2, failed: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f flights
				var calls, failed atomic.Int64
				ask := func(ctx context.Context) {
					_, err := f.share(ctx, responseKey{}, func() (answered, error) {
						calls.Add(1)
						select {
						case <-time.After(time.Second):
						case <-ctx.Done():
							return answered{}, ctx.Err()
						}
						out := good
						if tc.expires {
							out.expires = time.Now().Add(time.Hour)
						}
						return out, tc.err
					})
					if err != nil {
						failed.Add(1)
					}
				}
				first, cancel := context.WithCancel(t.Context())
				defer cancel()
				go ask(first)
				synctest.Wait()
				for range 2 {
					go ask(t.Context())
					synctest.Wait()
				}
				if n := calls.Load(); n != 1 {
					t.Errorf("%d calls while the first is under way", n)
				}
				if tc.cancel {
					cancel()
				}
				<-time.After(3 * time.Second)
				synctest.Wait()
				if calls.Load() != tc.calls || failed.Load() != tc.failed || len(f.flying) != 0 {
					t.Errorf("%d calls, %d failed, %d still under way; want %d, %d and none", calls.Load(), failed.Load(), len(f.flying), tc.calls, tc.failed)
				}
			})
		})
	}
}

func TestWhoWaitsForAnothersCallCanGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f flights
		released := make(chan struct{})
		go func() {
			_, _ = f.share(t.Context(), responseKey{}, func() (answered, error) {
				<-released
				return answered{}, nil
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.share(ctx, responseKey{}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(released)
	})
}
