// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/types"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/test/functions/certificates"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func echo(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return respond.To(req), nil
}

func client(t *testing.T, target string, transport credentials.TransportCredentials) fnv1.FunctionRunnerServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return fnv1.NewFunctionRunnerServiceClient(conn)
}

func request(namespace, name, tag string) *fnv1.RunFunctionRequest {
	return &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: tag},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: respond.Struct(map[string]any{
			"metadata": map[string]any{"namespace": namespace, "name": name},
		})}},
	}
}

func TestServeCountsAndRecords(t *testing.T) {
	s := Serve(t, echo, Options{})
	c := client(t, s.Target(), insecure.NewCredentials())
	var sent []*fnv1.RunFunctionRequest
	for i := range 3 {
		req := request("team-a", "chat", fmt.Sprintf("tag-%d", i))
		sent = append(sent, req)
		rsp, err := c.RunFunction(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if got := rsp.GetMeta().GetTag(); got != req.GetMeta().GetTag() {
			t.Errorf("tag: want %q, got %q", req.GetMeta().GetTag(), got)
		}
	}
	if _, err := c.RunFunction(t.Context(), request("team-b", "chat", "")); err != nil {
		t.Fatal(err)
	}

	chat := types.NamespacedName{Namespace: "team-a", Name: "chat"}
	if got := []int{s.Calls(chat), s.TotalCalls()}; !cmp.Equal(got, []int{3, 4}) {
		t.Errorf("calls for the XR and in total: want [3 4], got %v", got)
	}
	if diff := cmp.Diff(sent, s.Requests(chat), protocmp.Transform()); diff != "" {
		t.Errorf("Requests(...): -want, +got:\n%s", diff)
	}
	s.Reset()
	if s.Calls(chat)+s.TotalCalls() != 0 {
		t.Error("calls are still counted after Reset()")
	}
}

func TestServeStopAndRestart(t *testing.T) {
	s := Serve(t, echo, Options{})
	target := s.Target()
	call := func() error {
		_, err := client(t, target, insecure.NewCredentials()).RunFunction(t.Context(), request("a", "b", ""))
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s.Stop()
	if err := call(); status.Code(err) != codes.Unavailable {
		t.Errorf("stopped: want %v, got %v", codes.Unavailable, err)
	}
	for range 2 {
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	if err := call(); err != nil || s.Target() != target {
		t.Errorf("restarted at %q, was %q: %v", s.Target(), target, err)
	}
}

func TestServePanicTakesServerDown(t *testing.T) {
	s := Serve(t, func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) { panic("broken") }, Options{})
	_, err := client(t, s.Target(), insecure.NewCredentials()).RunFunction(t.Context(), request("a", "b", ""))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("panic: want %v, got %v", codes.Unavailable, err)
	}
	s.Stop()
	s.Handle(echo)
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, s.Target(), insecure.NewCredentials()).RunFunction(t.Context(), request("a", "b", "")); err != nil {
		t.Errorf("restarted: %v", err)
	}
}

func TestServeMutualTLS(t *testing.T) {
	authority, err := certificates.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	serverBundle, err := authority.Issue(certificates.Request{Name: "function", DNSNames: []string{"function.test"}})
	if err != nil {
		t.Fatal(err)
	}
	clientBundle, err := authority.Issue(certificates.Request{Name: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	serverConfig, err := serverBundle.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(t, echo, Options{TLS: serverConfig})

	for name, want := range map[string]codes.Code{"function.test": codes.OK, "another.test": codes.Unavailable} {
		config, err := clientBundle.ClientConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client(t, s.Target(), credentials.NewTLS(config)).RunFunction(t.Context(), request("a", "b", ""))
		if status.Code(err) != want {
			t.Errorf("server name %q: want %v, got %v", name, want, err)
		}
	}
	if _, err := client(t, s.Target(), insecure.NewCredentials()).RunFunction(t.Context(), request("a", "b", "")); err == nil {
		t.Error("a client without a certificate was served")
	}
}
