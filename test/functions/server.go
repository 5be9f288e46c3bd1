// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// maxMessageSize is the default limit of requests and responses, in bytes.
const maxMessageSize = 64 << 20

// Handler is a composition function. It is called concurrently. A request is the
// handler's own to change.
type Handler func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)

// Options say how a function is served. The zero value is plain text on a free
// local port.
type Options struct {
	// TLS secures connections; nil: plain text.
	TLS *tls.Config
	// Address to serve at, as host:port; empty: a free port of this machine.
	Address string
	// MaxMessageSize limits requests, in bytes; zero: 64 MiB.
	MaxMessageSize int
}

// Server serves a function at one address, with any number of stops and
// restarts. It is safe for concurrent use.
type Server struct {
	options Options
	address string
	log     callLog

	handlerLock sync.RWMutex
	handler     Handler

	// runLock guards what serves just now. It is held while serving stops, so
	// that whoever else stops waits for that.
	runLock sync.Mutex
	running *grpc.Server
	served  chan struct{}
}

// Serve starts a server for the length of a test.
func Serve(tb testing.TB, handler Handler, o Options) *Server {
	tb.Helper()
	s, err := Start(handler, o)
	if err != nil {
		tb.Fatalf("cannot serve a function: %v", err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// Start starts a server. The caller must Stop it.
func Start(handler Handler, o Options) (*Server, error) {
	if o.MaxMessageSize == 0 {
		o.MaxMessageSize = maxMessageSize
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	s := &Server{options: o, address: o.Address, handler: handler}
	if err := s.Restart(); err != nil {
		return nil, err
	}
	return s, nil
}

// Target is where the server is reached, as host:port. It stays the same over
// restarts.
func (s *Server) Target() string {
	s.runLock.Lock()
	defer s.runLock.Unlock()
	return s.address
}

// Calls is how many calls there were for an XR, those that failed included.
func (s *Server) Calls(xr types.NamespacedName) int {
	return s.log.calls(xr)
}

// TotalCalls is how many calls there were for all XRs.
func (s *Server) TotalCalls() int {
	return s.log.total()
}

// Requests are what was sent for an XR, in order. They must not be changed.
func (s *Server) Requests(xr types.NamespacedName) []*fnv1.RunFunctionRequest {
	return s.log.requests(xr)
}

// Reset forgets all calls.
func (s *Server) Reset() {
	s.log.reset()
}

// Handle makes another handler answer the calls that come from now on.
func (s *Server) Handle(handler Handler) {
	s.handlerLock.Lock()
	defer s.handlerLock.Unlock()
	s.handler = handler
}

// Stop breaks all connections and frees the port. It does not wait for handlers.
// Stopping a server that is stopped does nothing.
func (s *Server) Stop() {
	s.runLock.Lock()
	defer s.runLock.Unlock()
	if s.running == nil {
		return
	}
	s.running.Stop()
	<-s.served
	s.running = nil
}

// Restart makes a stopped server serve again, at the same address. Restarting
// one that runs does nothing.
func (s *Server) Restart() error {
	s.runLock.Lock()
	defer s.runLock.Unlock()
	if s.running != nil {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", s.address, err)
	}
	s.address = listener.Addr().String()

	transport := insecure.NewCredentials()
	if s.options.TLS != nil {
		transport = credentials.NewTLS(s.options.TLS)
	}
	running, served := grpc.NewServer(
		grpc.Creds(transport),
		grpc.MaxRecvMsgSize(s.options.MaxMessageSize),
	), make(chan struct{})
	fnv1.RegisterFunctionRunnerServiceServer(running, &service{server: s})
	s.running, s.served = running, served
	go func() {
		defer close(served)
		// It ends with an error only if the listener fails, which callers see.
		_ = running.Serve(listener)
	}()
	return nil
}

// service adapts a Server to the contract's interface.
type service struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
	server *Server
}

// RunFunction records a call and lets the handler answer it. A handler that
// panics takes the whole server down, as it would its process: connections
// break, and nothing answers until Restart.
func (s *service) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (rsp *fnv1.RunFunctionResponse, err error) {
	s.server.log.record(req)
	defer func() {
		if recover() != nil {
			go s.server.Stop()
			rsp, err = nil, status.Error(codes.Unavailable, "the function is gone")
		}
	}()
	s.server.handlerLock.RLock()
	handler := s.server.handler
	s.server.handlerLock.RUnlock()
	return handler(req)
}
