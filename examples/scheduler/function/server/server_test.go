// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/test/functions/certificates"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// echo answers with the request's tag.
type echo struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

func (echo) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag()}}, nil
}

// start serves echo for the length of a test and returns where.
func start(t *testing.T, o Options) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, echo{}, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve(...): %v", err)
		}
	})
	return listener.Addr().String()
}

// call makes one call and returns the tag of the answer.
func call(t *testing.T, address string, transport credentials.TransportCredentials) (string, error) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	rsp, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(t.Context(),
		&fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Tag: "tag"}})
	return rsp.GetMeta().GetTag(), err
}

func authority(t *testing.T) *certificates.Authority {
	t.Helper()
	a, err := certificates.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *certificates.Authority, dnsNames ...string) certificates.Bundle {
	t.Helper()
	b, err := a.Issue(certificates.Request{Name: "test", DNSNames: dnsNames})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func clientOf(t *testing.T, b certificates.Bundle) credentials.TransportCredentials {
	t.Helper()
	config, err := b.ClientConfig("scheduler")
	if err != nil {
		t.Fatal(err)
	}
	return credentials.NewTLS(config)
}

func TestServeInsecure(t *testing.T) {
	if got, err := call(t, start(t, Options{Insecure: true}), insecure.NewCredentials()); err != nil || got != "tag" {
		t.Errorf("call: want tag %q, got %q, error %v", "tag", got, err)
	}
}

func TestServeMutualTLS(t *testing.T) {
	ours, dir := authority(t), t.TempDir()
	if err := issue(t, ours, "scheduler").WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	address := start(t, Options{CertsDir: dir})

	if got, err := call(t, address, clientOf(t, issue(t, ours))); err != nil || got != "tag" {
		t.Errorf("known client: want tag %q, got %q, error %v", "tag", got, err)
	}
	stranger := issue(t, authority(t))
	stranger.Authority = issue(t, ours).Authority
	if _, err := call(t, address, clientOf(t, stranger)); status.Code(err) != codes.Unavailable {
		t.Errorf("client of another authority: want %v, got %v", codes.Unavailable, err)
	}
	if _, err := call(t, address, insecure.NewCredentials()); status.Code(err) != codes.Unavailable {
		t.Errorf("client without TLS: want %v, got %v", codes.Unavailable, err)
	}
}

// Certificates are replaced while the function runs; the old ones are worth
// nothing to a client of the new authority.
func TestServeReplacedCertificates(t *testing.T) {
	before, after, dir := authority(t), authority(t), t.TempDir()
	if err := issue(t, before, "scheduler").WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	address := start(t, Options{CertsDir: dir})
	if _, err := call(t, address, clientOf(t, issue(t, before))); err != nil {
		t.Fatalf("before: %v", err)
	}
	if err := issue(t, after, "scheduler").WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, address, clientOf(t, issue(t, after))); err != nil {
		t.Errorf("after: %v", err)
	}
	if _, err := call(t, address, clientOf(t, issue(t, before))); err == nil {
		t.Error("a client of the old authority was still served")
	}
}

func TestServeWithoutCertificates(t *testing.T) {
	for name, o := range map[string]Options{"NoFolder": {}, "EmptyFolder": {CertsDir: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if err := Serve(t.Context(), listener, echo{}, o); err == nil {
				t.Error("Serve(...): want an error, got none")
			}
			if err := listener.Close(); err == nil {
				t.Error("Serve(...) left its listener open")
			}
		})
	}
}
