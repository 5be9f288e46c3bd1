// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/test/nameserver"
)

// tally counts the calls that reach a function's servers, by tag.
type tally struct {
	mu    sync.Mutex // guards times
	times map[string]int
}

func newTally() *tally { return &tally{times: map[string]int{}} }

func (c *tally) count(body body) body {
	return func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		c.mu.Lock()
		c.times[req.GetMeta().GetTag()]++
		c.mu.Unlock()
		return body(ctx, req)
	}
}

func (c *tally) expectOnce(t *testing.T, calls int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.times) != calls {
		t.Errorf("%d calls reached a server, want all %d", len(c.times), calls)
	}
	for tag, times := range c.times {
		if times != 1 {
			t.Errorf("call %q reached a server %d times", tag, times)
		}
	}
}

// numbered requests each have a tag of their own.
func numbered(t *testing.T, n int) *Request {
	t.Helper()
	return request(t, &fnv1.RunFunctionRequest{Context: &structpb.Struct{Fields: map[string]*structpb.Value{
		"number": structpb.NewNumberValue(float64(n)),
	}}})
}

func TestAServerThatIsReplacedFailsNoCall(t *testing.T) {
	const replacements, callers = 5, 4
	arrived := newTally()
	s := serve(t, serverConfig{}, arrived.count(answer))
	i := newInstalled()
	i.development("f", s.address)
	c := connect(t, i, nil)

	done := make(chan struct{})
	made := make([]int, callers)
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() {
			for ; ; made[caller]++ {
				select {
				case <-done:
					return
				default:
				}
				if _, err := c.Call(t.Context(), "f", numbered(t, made[caller]*callers+caller)); err != nil {
					t.Errorf("call %d: %v", made[caller], err)
				}
			}
		})
	}
	for range replacements {
		before := s.calls.Load()
		eventually(t, func() bool { return s.calls.Load() > before+20 })
		s.grpc.GracefulStop()
		s = serve(t, serverConfig{address: s.address}, arrived.count(answer))
	}
	eventually(t, func() bool { return s.calls.Load() > 20 })
	close(done)
	calling.Wait()
	calls := 0
	for _, n := range made {
		calls += n
	}
	arrived.expectOnce(t, calls)
}

func TestACallThatReachedItsServerIsNotRepeated(t *testing.T) {
	const calls = 5
	arrived := newTally()
	var s *server
	s = serve(t, serverConfig{}, arrived.count(func(ctx context.Context, _ *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		s.listener.breakAll()
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	i := newInstalled()
	i.development("f", s.address)
	c := connect(t, i, nil)
	for n := range calls {
		call := &CallError{}
		if _, err := c.Call(t.Context(), "f", numbered(t, n)); !errors.As(err, &call) || call.Code != codes.Unavailable {
			t.Errorf("got %v, want a broken connection", err)
		}
	}
	arrived.expectOnce(t, calls)
}

func TestAConnectionThatLeadsNowhereIsReplaced(t *testing.T) {
	s := serve(t, serverConfig{}, answer)
	p := newProxy(t, s.address)
	i := newInstalled()
	i.development("f", p.address)
	c := connect(t, i, func(config *ConnectionsConfig) { config.CallTimeout = 500 * time.Millisecond })
	call := func() error {
		_, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	p.forgetConnections()
	failed := &CallError{}
	if err := call(); !errors.As(err, &failed) || failed.Cause != "no answer within 500ms" {
		t.Errorf("got %v, want no answer", err)
	}
	for range 3 {
		if err := call(); err != nil {
			t.Errorf("after that: %v", err)
		}
	}
	if got := s.listener.accepted.Load(); got != 2 {
		t.Errorf("the server saw %d connections, want 2", got)
	}
}

// A proxy passes connections on to an address until it forgets them: then they
// stay open and lead nowhere.
type proxy struct {
	address string

	mu   sync.Mutex // guards open
	open []*proxied
}

type proxied struct {
	near, far net.Conn
	forgotten chan struct{}
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	p := &proxy{}
	var passing sync.WaitGroup
	p.address = listen(t, func(near net.Conn) {
		far, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to)
		if err != nil {
			_ = near.Close()
			return
		}
		c := &proxied{near: near, far: far, forgotten: make(chan struct{})}
		p.mu.Lock()
		p.open = append(p.open, c)
		p.mu.Unlock()
		passing.Go(func() { c.pass(near, far) })
		passing.Go(func() { c.pass(far, near) })
	})
	t.Cleanup(func() {
		p.mu.Lock()
		for _, c := range p.open {
			_, _ = c.near.Close(), c.far.Close()
		}
		p.mu.Unlock()
		passing.Wait()
	})
	return p
}

func (c *proxied) pass(from, to net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-c.forgotten: // read, but not passed on
		default:
			_, _ = to.Write(buffer[:n])
		}
	}
}

func (p *proxy) forgetConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		close(c.forgotten)
	}
}

// gRPC servers hang up on whoever pings more often than they tolerate.
func TestPingsAreTolerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 16)
		s := &server{body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
			<-time.After(3 * time.Hour)
			return &fnv1.RunFunctionResponse{}, nil
		}}
		serving := grpc.NewServer()
		fnv1.RegisterFunctionRunnerServiceServer(serving, s)
		go func() { _ = serving.Serve(listener) }()
		defer serving.Stop()

		client, err := grpc.NewClient("passthrough:///f",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithKeepaliveParams(pings),
		)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		if _, err := fnv1.NewFunctionRunnerServiceClient(client).RunFunction(t.Context(), &fnv1.RunFunctionRequest{}); err != nil {
			t.Errorf("a call of hours failed: %v", err)
		}
	})
}

func TestCallsUseEachAddressOfAName(t *testing.T) {
	names := nameserver.Start(t)
	one := serve(t, serverConfig{address: "127.0.0.2:0"}, answer)
	_, port, _ := net.SplitHostPort(one.address)
	other := serve(t, serverConfig{address: "127.0.0.3:" + port}, answer)
	names.Set("f.test", "127.0.0.2", "127.0.0.3")
	i := newInstalled()
	i.development("f", "dns:///f.test:"+port)
	c := connect(t, i, nil)
	call := func() {
		if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err != nil {
			t.Error(err)
		}
	}
	bothAreCalled := func(a, b *server) {
		t.Helper()
		beforeA, beforeB := a.calls.Load(), b.calls.Load()
		eventually(t, func() bool {
			call()
			return a.calls.Load() > beforeA && b.calls.Load() > beforeB
		})
	}

	bothAreCalled(one, other)
	other.grpc.GracefulStop()
	before := one.calls.Load()
	for range 50 {
		call()
	}
	if got := one.calls.Load() - before; got != 50 {
		t.Errorf("the server that is left was called %d times, want 50", got)
	}
	bothAreCalled(one, serve(t, serverConfig{address: "127.0.0.3:" + port}, answer))
}
