// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// A body is what a function does when it is called.
type body func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)

// A server is a real gRPC server that runs a function, and counts.
type server struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	address     string
	calls       atomic.Int64 // answered by body
	v1, v1beta1 atomic.Int64 // however answered
	listener    *countingListener
	grpc        *grpc.Server
	body        body
}

type serverConfig struct {
	creds    credentials.TransportCredentials // plain text if nil
	address  string                           // any port of localhost if empty
	betaOnly bool
	options  []grpc.ServerOption
}

// serve a function until the test ends.
func serve(t testing.TB, config serverConfig, run body) *server {
	t.Helper()
	if config.creds == nil {
		config.creds = insecure.NewCredentials()
	}
	if config.address == "" {
		config.address = "localhost:0"
	}
	l, err := net.Listen("tcp", config.address)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s := &server{address: net.JoinHostPort("localhost", port), listener: &countingListener{Listener: l}, body: run}

	opts := append([]grpc.ServerOption{
		grpc.Creds(config.creds),
		grpc.ChainUnaryInterceptor(s.count),
		grpc.UnknownServiceHandler(s.unknown),
		grpc.MaxRecvMsgSize(DefaultMessageLimit),
	}, config.options...)
	s.grpc = grpc.NewServer(opts...)
	if config.betaOnly {
		beta := fnv1.FunctionRunnerService_ServiceDesc
		beta.ServiceName = "apiextensions.fn.proto.v1beta1.FunctionRunnerService"
		s.grpc.RegisterService(&beta, s)
	} else {
		fnv1.RegisterFunctionRunnerServiceServer(s.grpc, s)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.grpc.Serve(s.listener) })
	t.Cleanup(func() {
		s.grpc.Stop()
		serving.Wait()
	})
	return s
}

func (s *server) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	s.calls.Add(1)
	return s.body(ctx, req)
}

func (s *server) count(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method, _ := grpc.Method(ctx)
	s.countMethod(method)
	return handler(ctx, req)
}

func (s *server) unknown(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	s.countMethod(method)
	return status.Error(codes.Unimplemented, "unknown service")
}

func (s *server) countMethod(method string) {
	switch method {
	case methodV1:
		s.v1.Add(1)
	case methodV1Beta1:
		s.v1beta1.Add(1)
	}
}

// countingListener counts the connections that it accepted, and can break those
// that are open.
type countingListener struct {
	net.Listener

	accepted atomic.Int64

	mu   sync.Mutex // guards open
	open []net.Conn
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, conn)
	return conn, nil
}

func (l *countingListener) breakAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.open {
		_ = conn.Close()
	}
	l.open = nil
}

// answer with nothing in particular.
func answer(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return &fnv1.RunFunctionResponse{}, nil
}

// request to call a function with.
func request(t testing.TB, message *fnv1.RunFunctionRequest) *Request {
	t.Helper()
	req, err := NewRequest(message)
	if err != nil {
		t.Fatal(err)
	}
	return req
}
