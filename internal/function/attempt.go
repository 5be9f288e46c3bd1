// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// lastWords is how long a server that hangs up may take to say why.
const lastWords = 100 * time.Millisecond

// A stage is how far an attempt to connect got.
type stage uint8

const (
	resolving stage = iota
	dialling
	securing // the TLS handshake
	greeting // TLS, if any, stands; HTTP/2 does not yet
)

// An attempt remembers how the last try to connect failed or, before any did,
// how far it got. gRPC tells only in prose, with addresses that change.
type attempt struct {
	mu    sync.Mutex // guards what follows
	stage stage
	err   error // what failed in the stage; nil before any failure
}

// reached keeps what an earlier try came to: that another is under way says
// nothing, and the reason given must not depend on the moment.
func (a *attempt) reached(s stage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.stage = max(a.stage, s)
	}
}

// failed notes err, unless it only says that somebody lost interest.
func (a *attempt) failed(s stage, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	// Not every try hears why the server hangs up.
	if s == greeting && a.stage == greeting && refusal(a.err) != "" {
		return
	}
	a.stage, a.err = s, err
}

// refusal is what the server said of our certificate or our TLS, if that is what
// the error is about.
func refusal(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

// dial is a gRPC dialer.
func (a *attempt) dial(ctx context.Context, address string) (net.Conn, error) {
	a.reached(dialling)
	dialer := net.Dialer{}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		a.failed(dialling, err)
		return nil, err
	}
	a.reached(securing)
	return conn, nil
}

// greet watches the secured connection for the reason why a server hangs up: a
// server that doesn't trust our certificate says so only after the handshake.
func (a *attempt) greet(conn net.Conn) net.Conn {
	a.reached(greeting)
	watched := &watchedConn{Conn: conn, attempt: a, heard: make(chan struct{})}
	if raw, ok := conn.(syscall.Conn); ok {
		return &watchedSyscallConn{watchedConn: watched, Conn: raw}
	}
	return watched
}

// failure words how the last try to connect went.
func (a *attempt) failure() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.stage == resolving:
		return "no address is known for its host name"
	case a.stage == dialling:
		return "cannot connect: " + describe(a.err)
	case a.stage == securing:
		return "cannot establish TLS: " + describe(a.err)
	case a.err == nil:
		return "it accepts connections but does not speak gRPC"
	case refusal(a.err) != "":
		return "cannot establish TLS: " + describe(a.err)
	default:
		return "it hangs up on us"
	}
}

// describe words an error of a connection without addresses and times. No error
// means that it takes too long.
func describe(err error) string {
	var (
		op      *net.OpError
		sys     *os.SyscallError
		timeout net.Error
	)
	switch {
	case err == nil, errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection"
	case errors.As(err, &sys):
		return sys.Err.Error()
	case errors.As(err, &op) && refusal(err) == "":
		return stable(op.Err.Error())
	default:
		return describeTLS(err)
	}
}

func describeTLS(err error) string {
	var (
		invalid x509.CertificateInvalidError
		plain   tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate, or its authority's, has expired or is not valid yet"
	case errors.As(err, &plain):
		return "it does not speak TLS"
	case refusal(err) != "":
		return "it refused our certificate or our TLS: " + refusal(err)
	default:
		return stable(err.Error())
	}
}

// A watchedConn tells its attempt if the server hangs up instead of greeting.
type watchedConn struct {
	net.Conn

	attempt *attempt
	first   sync.Once     // read
	heard   chan struct{} // closed after it
}

// Read notes how the first read went.
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.first.Do(func() {
		if err != nil {
			c.attempt.failed(greeting, err)
		}
		close(c.heard)
	})
	return n, err
}

// Write lets an error wait for what the server says, since gRPC stops reading
// when it can't write.
func (c *watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil {
		return n, nil
	}
	timeout := time.NewTimer(lastWords)
	defer timeout.Stop()
	select {
	case <-c.heard:
	case <-timeout.C:
		c.attempt.failed(greeting, err)
	}
	return n, err
}

// A watchedSyscallConn also lets gRPC set options of the socket.
type watchedSyscallConn struct {
	*watchedConn
	syscall.Conn
}
