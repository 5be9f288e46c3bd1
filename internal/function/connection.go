// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

const (
	methodV1      = fnv1.FunctionRunnerService_RunFunction_FullMethodName
	methodV1Beta1 = "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction"
)

// deadlineSlack is how much earlier than ours the function's clock may run out.
const deadlineSlack = 20 * time.Millisecond

// A connection that was silent for the interval is pinged once a call needs it,
// and closed unless something comes back in time. gRPC servers hang up on who
// pings more often than every five minutes, unless they are told otherwise; the
// sixth is for pings that are delayed on their way. The timeout is also how long
// the kernel waits for data to be acknowledged before it gives a connection up:
// that finds a host that vanished in the middle of calls.
var pings = keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 10 * time.Second}

// A headless Service has an address for each Pod: use them all.
const serviceConfig = `{"loadBalancingConfig":[{"round_robin":{}}]}`

// A connection to one function at one target.
type connection struct {
	target         target
	client         *grpc.ClientConn
	attempt        *attempt
	gate           *gate
	callTimeout    time.Duration
	connectTimeout time.Duration
	messageLimit   int

	// beta is set once the function answered under v1beta1 only.
	beta atomic.Bool

	// Guarded by Connections.mu.
	calls    int
	retired  bool
	doubtful bool // a call had no answer on it: the next ones use another

	mu      sync.Mutex // guards what follows; not held while waiting
	down    *fault     // why the function could not be reached; nil if it could, or nobody tried yet
	retryAt time.Time  // when to try again with a new connection, if down
}

// dial the target, without waiting for the connection. down is why an earlier one
// to it failed.
func (c *Connections) dial(at target, g *gate, down *fault) (*connection, error) {
	conn := &connection{
		target:         at,
		attempt:        &attempt{},
		gate:           g,
		callTimeout:    c.config.CallTimeout,
		connectTimeout: c.config.ConnectTimeout,
		messageLimit:   c.config.MessageLimit,
		down:           down,
		retryAt:        time.Now().Add(c.config.ConnectTimeout),
	}
	retry := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: c.config.ConnectTimeout}
	client, err := grpc.NewClient(at.endpoint,
		grpc.WithTransportCredentials(c.credentials(at, conn.attempt)),
		grpc.WithContextDialer(conn.attempt.dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: c.config.ConnectTimeout}),
		grpc.WithKeepaliveParams(pings),
		// Whoever can write to the function's DNS has no say in how it is called.
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(serviceConfig),
		// gRPC still repeats a call that it knows the function has not seen.
		grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec{}),
			grpc.MaxCallSendMsgSize(c.config.MessageLimit),
			grpc.MaxCallRecvMsgSize(c.config.MessageLimit),
		),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot use the endpoint: %w", err)
	}
	conn.client = client
	return conn, nil
}

// close is idempotent, and does nothing to a nil connection.
func (c *connection) close() {
	if c != nil {
		_ = c.client.Close() // fails only if it is closed already
	}
}

// worn returns why the function could not be reached if it is time to try a new
// connection.
func (c *connection) worn() *fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil || time.Now().Before(c.retryAt) || c.client.GetState() == connectivity.Ready {
		return nil
	}
	return c.down
}

func (c *connection) call(ctx context.Context, req *Request, probe bool) (*Response, *fault) {
	if flt := c.ready(ctx, probe); flt != nil {
		return nil, flt
	}
	if req.Size() > c.messageLimit {
		return nil, &fault{code: codes.ResourceExhausted, cause: "the request is larger than the limit of " + asSize(c.messageLimit)}
	}
	passage, refused := c.gate.enter(ctx)
	if refused != nil {
		return nil, refused
	}
	var resp *Response
	flt := &fault{code: codes.Canceled} // stays if the call panics
	defer func() { c.gate.leave(passage, flt) }()
	resp, flt = c.callKnown(ctx, req)
	return resp, flt
}

// unknownMethod is how gRPC servers, in whichever language, word that they don't
// know what is called, or say nothing at all. A function may say Unimplemented of
// something else.
var unknownMethod = regexp.MustCompile(`(?i)unknown (service|method)|method not found|not implement the method|(service|method) is unimplemented|not know the method|^` + noReason + `$`)

// callKnown calls the function under the name that it is known to have, and under
// the other if it has not.
func (c *connection) callKnown(ctx context.Context, req *Request) (*Response, *fault) {
	method, other := methodV1, methodV1Beta1
	if c.beta.Load() {
		method, other = other, method
	}
	resp, flt := c.invoke(ctx, method, req)
	if flt == nil || flt.code != codes.Unimplemented || !unknownMethod.MatchString(flt.cause) {
		return resp, flt
	}
	resp, flt = c.invoke(ctx, other, req)
	if flt == nil {
		c.beta.Store(other == methodV1Beta1)
	}
	if flt != nil && flt.code == codes.Unimplemented {
		flt.cause = "it serves no FunctionRunnerService, neither v1 nor v1beta1: is it a composition function?"
	}
	return resp, flt
}

func (c *connection) invoke(ctx context.Context, method string, req *Request) (*Response, *fault) {
	resp := &Response{}
	trailer := metadata.MD{}
	err := c.client.Invoke(ctx, method, req, resp, grpc.Trailer(&trailer), grpc.WaitForReady(true))
	if err == nil {
		return resp, nil
	}
	// The server has the same deadline. Which side notices first must not show.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < deadlineSlack {
		return nil, c.localFault(codes.DeadlineExceeded)
	}
	// A server ends a call with a trailer. Without one the error is gRPC's own,
	// made on this side.
	if st := status.Convert(err); len(trailer) > 0 {
		// A proxy that gave up on the function answers in its place.
		answered := st.Code() != codes.DeadlineExceeded
		return nil, &fault{code: st.Code(), cause: stable(st.Message()), answered: answered}
	}
	return nil, c.localFault(status.Code(err))
}

// ready waits until the connection is, for connectTimeout at most. If the
// function is known to be down, only a probe waits.
func (c *connection) ready(ctx context.Context, probe bool) *fault {
	if down := c.known(); down != nil && !probe {
		return down
	}

	limited, cancel := context.WithTimeout(ctx, c.connectTimeout)
	defer cancel()
	for {
		state := c.client.GetState()
		switch state {
		case connectivity.Ready:
			c.reached()
			return nil
		case connectivity.Shutdown:
			return &fault{code: codes.Canceled, cause: "the connection was closed"}
		case connectivity.Idle:
			c.client.Connect()
		case connectivity.Connecting, connectivity.TransientFailure:
		}
		if c.client.WaitForStateChange(limited, state) {
			continue
		}
		flt := &fault{code: codes.Unavailable, cause: c.attempt.failure()}
		if ctx.Err() == nil {
			c.unreachable(flt)
		}
		return flt
	}
}

// known returns why the function can't be reached, unless it can be by now.
func (c *connection) known() *fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client.GetState() == connectivity.Ready {
		c.down = nil
	}
	return c.down
}

func (c *connection) reached() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = nil
}

func (c *connection) unreachable(flt *fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = flt
	c.retryAt = time.Now().Add(c.connectTimeout)
}
