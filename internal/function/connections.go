// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Defaults of ConnectionsConfig.
const (
	DefaultCallTimeout    = 20 * time.Second
	DefaultConnectTimeout = 5 * time.Second
	DefaultMessageLimit   = 64 << 20
	DefaultHangingCalls   = 8
)

var errConnectionsClosed = errors.New("connections to functions are closed")

// ConnectionsConfig says how functions are found and called.
type ConnectionsConfig struct {
	// Reader reads Functions, FunctionRevisions and the Secret with our
	// certificate. Each call reads the first two, so it should be a cache.
	Reader client.Reader

	// Namespace of the Secret with our certificate.
	Namespace string

	// AllowDevelopment permits plain-text calls of Functions whose annotations
	// name a development server.
	AllowDevelopment bool

	// CallTimeout limits one call, connecting included. Zero means
	// DefaultCallTimeout.
	CallTimeout time.Duration

	// ConnectTimeout limits the wait for a connection. After a failure, calls of
	// that function fail at once, except for one every ConnectTimeout that tries
	// again with a new connection, so that a function which is down doesn't hold
	// every worker. Zero means DefaultConnectTimeout.
	ConnectTimeout time.Duration

	// MessageLimit is the largest request and the largest response, in bytes.
	// Zero means DefaultMessageLimit.
	MessageLimit int

	// HangingCalls is how many calls of one function may wait for an answer that
	// is overdue, before others are refused. It must be well below the number of
	// workers. Zero means DefaultHangingCalls.
	HangingCalls int
}

// Connections is the Caller that goes over the wire. It keeps one connection a
// function and dials again when the function's endpoint or our certificate
// changes. Connections use mutual TLS, except to development servers.
//
// A call that may have reached its function is not repeated. One that waits for
// the connection to be made again, as when the function restarts, costs only time.
//
// It is safe for concurrent use. Close it to release its connections.
type Connections struct {
	config ConnectionsConfig

	mu     sync.Mutex // guards what follows; not held while dialling, calling or closing
	open   map[string]*connection
	gates  map[string]gated // last longer than connections: what hangs does so on each
	closed bool
}

var _ Caller = &Connections{}

// NewConnections without any connection; functions are dialled when called.
func NewConnections(config ConnectionsConfig) (*Connections, error) {
	if config.Reader == nil {
		return nil, errors.New("cannot reach functions without a reader for them")
	}
	if config.CallTimeout == 0 {
		config.CallTimeout = DefaultCallTimeout
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = DefaultConnectTimeout
	}
	if config.MessageLimit == 0 {
		config.MessageLimit = DefaultMessageLimit
	}
	if config.HangingCalls == 0 {
		config.HangingCalls = DefaultHangingCalls
	}
	return &Connections{config: config, open: map[string]*connection{}, gates: map[string]gated{}}, nil
}

// Call the function's active revision, or its development server. What the call
// itself fails with is a *CallError, or the context's error if that ended first.
func (c *Connections) Call(ctx context.Context, function string, req *Request) (*Response, error) {
	at, err := c.find(ctx, function)
	if err != nil {
		return nil, fmt.Errorf("function %q: %w", function, err)
	}

	conn, probe, err := c.acquire(function, at)
	if err != nil {
		return nil, fmt.Errorf("function %q at %s: %w", function, at.endpoint, err)
	}
	defer c.release(conn)

	began := time.Now()
	resp, err := c.callOn(ctx, conn, function, at, req, probe)
	countCall(function, began, err)
	return resp, err
}

func (c *Connections) callOn(
	ctx context.Context, conn *connection, function string, at target, req *Request, probe bool,
) (*Response, error) {
	limited, cancel := context.WithTimeout(ctx, c.config.CallTimeout)
	defer cancel()
	resp, flt := conn.call(limited, req, probe)
	if flt != nil && flt.silent {
		c.doubt(conn)
	}
	switch {
	case flt == nil:
		return resp, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("function %q at %s: %w", function, at.endpoint, ctx.Err())
	default:
		return nil, &CallError{Function: function, Endpoint: at.endpoint, Code: flt.code, Cause: flt.cause, Early: flt.early}
	}
}

// Forget closes the function's connection once no call uses it any more.
func (c *Connections) Forget(function string) {
	c.mu.Lock()
	idle := c.retireLocked(function)
	c.mu.Unlock()
	idle.close()
}

// Remove is Forget for a function that is no longer installed.
func (c *Connections) Remove(function string) {
	c.Forget(function)
	c.mu.Lock()
	delete(c.gates, function)
	c.mu.Unlock()
	dropMetricsOf(function)
}

// Close closes all connections at once: calls in progress fail, as do later ones.
func (c *Connections) Close() {
	c.mu.Lock()
	open := c.open
	c.open, c.closed = nil, true
	c.mu.Unlock()
	for _, conn := range open {
		conn.close()
	}
}

// acquire the function's connection for one call. The caller releases it. probe
// tells that this call is the one to try again whether the function is back.
func (c *Connections) acquire(function string, at target) (conn *connection, probe bool, err error) {
	c.mu.Lock()
	conn, idle, probe, err := c.acquireLocked(function, at)
	c.mu.Unlock()
	idle.close()
	return conn, probe, err
}

func (c *Connections) acquireLocked(function string, at target) (conn, idle *connection, probe bool, err error) {
	if c.closed {
		return nil, nil, false, errConnectionsClosed
	}

	conn = c.open[function]
	var down *fault
	if conn != nil && conn.target == at && !conn.doubtful {
		if down = conn.worn(); down == nil {
			conn.calls++
			return conn, nil, false, nil
		}
	}

	// A new connection resolves the name again, which an old one may do only
	// rarely: a function that moved is found.
	fresh, err := c.dial(at, c.gateLocked(function, at), down)
	if err != nil {
		return nil, nil, false, err
	}
	idle = c.retireLocked(function)
	c.open[function] = fresh
	fresh.calls++
	return fresh, idle, down != nil, nil
}

// A gated version of a function.
type gated struct {
	*gate

	version, endpoint string
}

// gateLocked returns the gate of the version that is called. Another one is not
// judged by it.
func (c *Connections) gateLocked(function string, at target) *gate {
	g, ok := c.gates[function]
	if !ok || g.version != at.version || g.endpoint != at.endpoint {
		g = gated{gate: newGate(c.config.HangingCalls, c.config.CallTimeout), version: at.version, endpoint: at.endpoint}
		c.gates[function] = g
	}
	return g.gate
}

// doubt makes the next call use another connection. Nobody can tell a function
// that hangs from a connection that something on the way keeps open, although it
// leads nowhere. The calls that are under way on it go on.
func (c *Connections) doubt(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.doubtful = true
}

// retireLocked makes the function's connection, if any, unavailable for new
// calls, and returns it if no call uses it, for the caller to close.
func (c *Connections) retireLocked(function string) (idle *connection) {
	conn, ok := c.open[function]
	if !ok {
		return nil
	}
	delete(c.open, function)
	conn.retired = true
	if conn.calls > 0 {
		return nil
	}
	return conn
}

func (c *Connections) release(conn *connection) {
	c.mu.Lock()
	conn.calls--
	last := conn.retired && conn.calls == 0
	c.mu.Unlock()
	if last {
		conn.close()
	}
}
