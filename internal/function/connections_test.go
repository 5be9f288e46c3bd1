// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

func TestCallOverMutualTLS(t *testing.T) {
	ca := newAuthority(t)
	s := serve(t, serverConfig{creds: ca.server("localhost", time.Now().Add(time.Hour))}, answer)
	i := newInstalled()
	i.setSecret(ca.secret())
	i.revise("f", 1, "dns:///"+s.address)
	c := connect(t, i, nil)

	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if got := s.calls.Load(); got != 20 {
		t.Errorf("the server was called %d times, want 20", got)
	}
	if got := s.listener.accepted.Load(); got != 1 {
		t.Errorf("the server saw %d connections, want 1", got)
	}
}

func TestCallFollowsTheActiveRevision(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	ca := newAuthority(t)
	creds := func() serverConfig { return serverConfig{creds: ca.server("localhost", time.Now().Add(time.Hour))} }
	before := serve(t, creds(), func(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		close(started)
		<-finish
		return answer(ctx, req)
	})
	after := serve(t, creds(), answer)
	i := newInstalled()
	i.setSecret(ca.secret())
	i.revise("f", 1, "dns:///"+before.address)
	c := connect(t, i, nil)

	var slow sync.WaitGroup
	slow.Go(func() {
		if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err != nil {
			t.Errorf("a call that had begun before the function was revised failed: %v", err)
		}
	})
	<-started
	i.revise("f", 2, "dns:///"+after.address)
	if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err != nil {
		t.Fatal(err)
	}
	close(finish)
	slow.Wait()
	if got := after.calls.Load(); got != 1 {
		t.Errorf("the new revision was called %d times, want 1", got)
	}
	if len(c.open) != 1 {
		t.Errorf("%d connections are open, want 1", len(c.open))
	}
}

func TestCallUsesARotatedCertificate(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	i := newInstalled()
	i.setSecret(before.secret())
	old := serve(t, serverConfig{creds: before.server("localhost", time.Now().Add(time.Hour))}, answer)
	i.revise("f", 1, "dns:///"+old.address)
	c := connect(t, i, nil)
	if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err != nil {
		t.Fatal(err)
	}

	i.setSecret(after.secret())
	old.grpc.GracefulStop() // returns when our side has noticed
	serve(t, serverConfig{creds: after.server("localhost", time.Now().Add(time.Hour)), address: old.address}, answer)
	if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err != nil {
		t.Errorf("with the rotated certificate: %v", err)
	}
}

// A connection that lasts must not keep a certificate that was replaced in use.
func TestARotatedCertificateIsShownThoughTheServerNeitherRestartsNorHangsUp(t *testing.T) {
	ca := newAuthority(t)
	s := serve(t, serverConfig{creds: ca.server("localhost", time.Now().Add(time.Hour))}, answer)
	i := newInstalled()
	i.revise("f", 1, "dns:///"+s.address)
	c := connect(t, i, nil)
	for range 3 {
		i.setSecret(ca.secret())
		for range 3 {
			if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err != nil {
				t.Error(err)
			}
		}
	}
	if got := s.listener.accepted.Load(); got != 3 {
		t.Errorf("the server saw %d connections, want one for each certificate", got)
	}
}

func TestCallWithoutTrust(t *testing.T) {
	t.Parallel()
	const connectTimeout = 300 * time.Millisecond
	soon := time.Now().Add(time.Hour)
	ours, theirs := newAuthority(t), newAuthority(t)
	mixed := ours.secret()
	mixed[keyAuthority] = theirs.pem()
	expired := ours.secret()
	expired[keyCertificate], expired[keyPrivate] = ours.issue("crosswatch", time.Now().Add(-time.Minute))

	cases := map[string]struct {
		server serverConfig
		secret map[string][]byte
		want   string
	}{
		"UnknownAuthority": {
			server: serverConfig{creds: theirs.server("localhost", soon)},
			secret: ours.secret(),
			want:   "unknown authority",
		},
		"Expired": {
			server: serverConfig{creds: ours.server("localhost", time.Now().Add(-time.Minute))},
			secret: ours.secret(),
			want:   "has expired",
		},
		"OtherHost": {
			server: serverConfig{creds: ours.server("elsewhere", soon)},
			secret: ours.secret(),
			want:   "elsewhere",
		},
		"WeAreUnknown": {
			server: serverConfig{creds: theirs.server("localhost", soon)},
			secret: mixed,
			want:   "refused our certificate",
		},
		"WeAreExpired": {
			server: serverConfig{creds: ours.server("localhost", soon)},
			secret: expired,
			want:   "refused our certificate or our TLS: tls: expired certificate",
		},
		"PlainTextServer": {
			server: serverConfig{},
			secret: ours.secret(),
			want:   "does not speak TLS",
		},
		"NoSecret": {
			server: serverConfig{creds: ours.server("localhost", soon)},
			want:   testNamespace + "/" + ClientSecretName,
		},
		"EmptySecret": {
			server: serverConfig{creds: ours.server("localhost", soon)},
			secret: map[string][]byte{},
			want:   "tls.crt",
		},
		"NoAuthority": {
			server: serverConfig{creds: ours.server("localhost", soon)},
			secret: map[string][]byte{keyCertificate: mixed[keyCertificate], keyPrivate: mixed[keyPrivate]},
			want:   "ca.crt",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tc.server, answer)
			i := newInstalled()
			if tc.secret != nil {
				i.setSecret(tc.secret)
			}
			i.revise("f", 1, "dns:///"+s.address)

			var texts []string
			for range 2 {
				c := connect(t, i, func(config *ConnectionsConfig) { config.ConnectTimeout = connectTimeout })
				_, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
				call := &CallError{}
				if !errors.As(err, &call) || call.Code != codes.Unavailable || !strings.Contains(call.Cause, tc.want) {
					t.Fatalf("got %v, want a CallError that says %q", err, tc.want)
				}
				texts = append(texts, err.Error())
			}
			if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
				t.Errorf("the text changes: %s", diff)
			}
			if got := s.calls.Load(); got != 0 {
				t.Errorf("the function was called %d times, want none", got)
			}
		})
	}
}

func TestCallOfAFunctionThatIsDown(t *testing.T) {
	const connectTimeout = time.Second
	s := serve(t, serverConfig{}, answer)
	s.grpc.Stop()
	i := newInstalled()
	i.development("f", s.address)
	c := connect(t, i, func(config *ConnectionsConfig) { config.ConnectTimeout = connectTimeout })

	_, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
	want := &CallError{Function: "f", Endpoint: s.address, Code: codes.Unavailable, Cause: "cannot connect: connection refused"}
	got := &CallError{}
	if !errors.As(err, &got) || !cmp.Equal(got, want) {
		t.Fatalf("got %v, want %v", err, want)
	}

	began := time.Now()
	_, again := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
	if took := time.Since(began); took >= connectTimeout {
		t.Errorf("the next call took %s, although the function was known to be down", took)
	}
	if again == nil || again.Error() != err.Error() {
		t.Errorf("got %v from the next call, want %v again", again, err)
	}

	serve(t, serverConfig{address: s.address}, answer)
	eventually(t, func() bool {
		_, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
		return err == nil
	})
}

func TestCallFindsAFunctionThatMoved(t *testing.T) {
	// A failed connection is replaced when it is tried again.
	s := serve(t, serverConfig{}, answer)
	s.grpc.Stop()
	i := newInstalled()
	i.development("f", s.address)
	c := connect(t, i, func(config *ConnectionsConfig) { config.ConnectTimeout = 50 * time.Millisecond })
	if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err == nil {
		t.Fatal("calling a function that is down did not fail")
	}
	first := c.open["f"]
	eventually(t, func() bool {
		_, _ = c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
		return c.open["f"] != first
	})
}

// Case D2: what a server knows is found out by asking, and remembered as long as
// the connection lasts.
func TestD2CallFallsBackOnlyOnUnimplemented(t *testing.T) {
	type calls struct{ V1, V1Beta1 int64 }
	cases := map[string]struct {
		reason   string
		betaOnly bool
		body     body
		want     calls
		code     codes.Code // OK if the calls succeed
		says     string     // part of the error
	}{
		"V1": {
			reason: "A server of today is only called as such.",
			body:   answer,
			want:   calls{V1: 3},
		},
		"BetaOnly": {
			reason:   "That a server knows only the older service is found out once.",
			betaOnly: true,
			body:     answer,
			want:     calls{V1: 1, V1Beta1: 3},
		},
		"Unavailable": {
			reason: "A server that is busy is not an older one.",
			body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return nil, status.Error(codes.Unavailable, "busy")
			},
			want: calls{V1: 3},
			code: codes.Unavailable,
		},
		"Neither": {
			reason: "Some other gRPC service is no function.",
			body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return nil, status.Error(codes.Unimplemented, "Method not found!")
			},
			want: calls{V1: 3, V1Beta1: 3},
			code: codes.Unimplemented,
			says: "is it a composition function?",
		},
		"OfAFeature": {
			reason: "What a function has not implemented is not the method.",
			body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return nil, status.Error(codes.Unimplemented, "resizing is not implemented yet")
			},
			want: calls{V1: 3},
			code: codes.Unimplemented,
			says: "resizing is not implemented yet",
		},
		"OfSomethingElse": {
			reason: "A function may say it of what it is asked to do: it was called, and is not called again.",
			body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return nil, status.Error(codes.Unimplemented, "this cloud has no GPUs")
			},
			want: calls{V1: 3},
			code: codes.Unimplemented,
			says: "this cloud has no GPUs",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, serverConfig{betaOnly: tc.betaOnly}, tc.body)
			i := newInstalled()
			i.development("f", s.address)
			c := connect(t, i, nil)
			for range 3 {
				_, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
				call := &CallError{}
				if errors.As(err, &call) != (tc.code != codes.OK) || call.Code != tc.code || !strings.Contains(call.Cause, tc.says) {
					t.Errorf("%s\ngot error %v, want code %s and %q", tc.reason, err, tc.code, tc.says)
				}
			}
			if diff := cmp.Diff(tc.want, calls{V1: s.v1.Load(), V1Beta1: s.v1beta1.Load()}); diff != "" {
				t.Errorf("%s\ncalls: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestD2ThatAServerIsOldIsForgottenWithItsConnection(t *testing.T) {
	old := serve(t, serverConfig{betaOnly: true}, answer)
	i := newInstalled()
	i.development("f", old.address)
	c := connect(t, i, nil)
	for range 2 {
		for range 3 {
			if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err != nil {
				t.Fatal(err)
			}
		}
		c.Forget("f")
	}
	if v1, beta := old.v1.Load(), old.v1beta1.Load(); v1 != 2 || beta != 6 {
		t.Errorf("the server was called %d times as one of today and %d times as an older one, want 2, once a connection, and 6", v1, beta)
	}
}

// Case D2: a function that knows nothing but extra resources is shown those.
func TestD2AFunctionThatKnowsOnlyExtraResourcesIsShownThem(t *testing.T) {
	old := serve(t, serverConfig{betaOnly: true}, func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		shown := req.GetExtraResources()["it"].GetItems() //nolint:staticcheck // Older functions know nothing else.
		return &fnv1.RunFunctionResponse{
			Results:      []*fnv1.Result{{Message: fmt.Sprintf("shown %d", len(shown))}},
			Requirements: &fnv1.Requirements{ExtraResources: map[string]*fnv1.ResourceSelector{"it": byName("ns", "a")}}, //nolint:staticcheck // As above.
		}, nil
	})
	i := newInstalled()
	i.development("f", old.address)
	got, err := newRunner(t, connect(t, i, nil)).Run(t.Context(), step(newCluster(configMap("ns", "a", nil))))
	if err != nil {
		t.Fatal(err)
	}
	if message := got.Response.GetResults()[0].GetMessage(); message != "shown 1" || got.Rounds != 2 {
		t.Errorf("after %d calls the function was %s, want shown 1 after 2", got.Rounds, message)
	}
}

func TestCallOfAFunctionThatMisbehaves(t *testing.T) {
	var s *server // of the case that runs
	cases := map[string]struct {
		timeout time.Duration // of the call; the default if zero
		body    body
		want    CallError
	}{
		"Fails": {
			body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return nil, status.Error(codes.Unknown, "read tcp 10.1.2.3:54321->10.0.0.1:443: no route at 0xc000123456")
			},
			want: CallError{Code: codes.Unknown, Cause: "read tcp 10.0.0.1:443: no route at 0x…"},
		},
		"Crashes": {
			body: func(ctx context.Context, _ *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				s.listener.breakAll()
				<-ctx.Done()
				return nil, ctx.Err()
			},
			want: CallError{Code: codes.Unavailable, Cause: "the connection broke during the call: did the function crash?"},
		},
		"Hangs": {
			timeout: 300 * time.Millisecond,
			body: func(ctx context.Context, _ *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			want: CallError{Code: codes.DeadlineExceeded, Cause: "no answer within 300ms"},
		},
		"AnswersTooMuch": {
			body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Message: strings.Repeat("x", 2<<20)}}}, nil
			},
			want: CallError{Code: codes.ResourceExhausted, Cause: "the response is larger than the limit of 1 MiB"},
		},
		"AnswersInvalidText": {
			body: func(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Message: "\xff"}}}, nil
			},
			want: CallError{Code: codes.Internal, Cause: "grpc: error while marshaling: string field contains invalid UTF-8"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s = serve(t, serverConfig{}, tc.body)
			healthy := serve(t, serverConfig{}, answer)
			i := newInstalled()
			i.development("f", s.address)
			i.development("healthy", healthy.address)
			c := connect(t, i, func(config *ConnectionsConfig) {
				config.MessageLimit = 1 << 20
				config.CallTimeout = tc.timeout
			})

			_, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
			tc.want.Function, tc.want.Endpoint = "f", s.address
			got := &CallError{}
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want a CallError", err)
			}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if _, err := c.Call(t.Context(), "healthy", request(t, &fnv1.RunFunctionRequest{})); err != nil {
				t.Errorf("another function suffers: %v", err)
			}
		})
	}
}

func TestCallOfWhatIsNoFunction(t *testing.T) {
	cases := map[string]struct {
		accept func(net.Conn)
		want   string
	}{
		"HangsUp":     {accept: func(conn net.Conn) { _ = conn.Close() }, want: "hangs up"},
		"SaysNothing": {accept: func(net.Conn) {}, want: "does not speak gRPC"},
		"SpeaksHTTP1": {
			accept: func(conn net.Conn) { _, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
			want:   "does not speak gRPC",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			address := listen(t, tc.accept)
			i := newInstalled()
			i.development("f", address)
			c := connect(t, i, func(config *ConnectionsConfig) { config.ConnectTimeout = 300 * time.Millisecond })
			_, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
			call := &CallError{}
			if !errors.As(err, &call) || call.Code != codes.Unavailable || !strings.Contains(call.Cause, tc.want) {
				t.Errorf("got %v, want a CallError that says %q", err, tc.want)
			}
		})
	}
}

func TestCallWithoutAnEndpoint(t *testing.T) {
	cases := map[string]struct {
		install func(*installed)
		want    string
	}{
		"NoFunction":  {install: func(*installed) {}, want: `function "f": no Function of that name is installed`},
		"NoRevision":  {install: func(i *installed) { i.add("f", nil) }, want: `function "f": it has no active FunctionRevision`},
		"NoEndpoint":  {install: func(i *installed) { i.revise("f", 1, "") }, want: `function "f": its FunctionRevision "f-1" has no endpoint yet`},
		"Development": {install: func(i *installed) { i.development("f", "localhost:1") }, want: `function "f": it is annotated to run on a development server; start the operator with --allow-development-functions to call it there`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := newInstalled()
			tc.install(i)
			c := connect(t, i, func(config *ConnectionsConfig) { config.AllowDevelopment = false })
			_, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{}))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	started := make(chan struct{})
	s := serve(t, serverConfig{}, func(ctx context.Context, _ *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	i := newInstalled()
	i.development("f", s.address)
	c := connect(t, i, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if _, err := c.Call(ctx, "f", request(t, &fnv1.RunFunctionRequest{})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestForgetAndClose(t *testing.T) {
	s := serve(t, serverConfig{}, answer)
	i := newInstalled()
	i.development("f", s.address)
	c := connect(t, i, nil)
	for range 2 {
		if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); err != nil {
			t.Fatal(err)
		}
		c.Forget("f")
		c.Forget("f")
	}
	if got := s.listener.accepted.Load(); got != 2 {
		t.Errorf("the server saw %d connections, want one before the function was forgotten and one after", got)
	}
	c.Close()
	c.Close()
	if _, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{})); !errors.Is(err, errConnectionsClosed) {
		t.Errorf("got %v after Close, want %v", err, errConnectionsClosed)
	}
}

func TestCallsAreCountedWhileTheFunctionIsInstalled(t *testing.T) {
	const function = "counted"
	s := serve(t, serverConfig{}, func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		if req.GetInput().GetFields()["say"].GetStringValue() == "bad" {
			return nil, status.Error(codes.Aborted, "no")
		}
		return &fnv1.RunFunctionResponse{}, nil
	})
	i := newInstalled()
	i.development(function, s.address)
	c := connect(t, i, nil)
	for _, word := range []string{"good", "bad", "good"} {
		say := &structpb.Struct{Fields: map[string]*structpb.Value{"say": structpb.NewStringValue(word)}}
		_, err := c.Call(t.Context(), function, request(t, &fnv1.RunFunctionRequest{Input: say}))
		if (err != nil) != (word == "bad") {
			t.Fatal(err)
		}
	}
	got := map[string]float64{
		"OK":      testutil.ToFloat64(calls.WithLabelValues(function, "OK")),
		"Aborted": testutil.ToFloat64(calls.WithLabelValues(function, "Aborted")),
	}
	if diff := cmp.Diff(map[string]float64{"OK": 2, "Aborted": 1}, got); diff != "" {
		t.Errorf("calls by code (-want +got):\n%s", diff)
	}

	before := testutil.CollectAndCount(calls) + testutil.CollectAndCount(callSeconds)
	c.Remove(function)
	if after := testutil.CollectAndCount(calls) + testutil.CollectAndCount(callSeconds); before-after != 3 {
		t.Errorf("removing the function dropped %d series, want two of calls and one of times", before-after)
	}
}

func TestCallCarriesLargeMessages(t *testing.T) {
	const size = 8 << 20
	s := serve(t, serverConfig{}, func(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		return &fnv1.RunFunctionResponse{Context: req.GetInput()}, nil
	})
	i := newInstalled()
	i.development("f", s.address)
	c := connect(t, i, nil)
	input := &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewStringValue(strings.Repeat("x", size))}}
	resp, err := c.Call(t.Context(), "f", request(t, &fnv1.RunFunctionRequest{Input: input}))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(resp.Message().GetContext().GetFields()["x"].GetStringValue()); got != size {
		t.Errorf("got %d bytes back, want %d", got, size)
	}
}

// listen accepts connections, which are closed when the test ends.
func listen(t *testing.T, accept func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	counting := &countingListener{Listener: l}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := counting.Accept()
			if err != nil {
				return
			}
			accept(conn)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
		counting.breakAll()
	})
	return l.Addr().String()
}

// eventually polls a condition that another goroutine brings about.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(30 * time.Second)
	for !condition() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal("it did not happen within 30s")
		}
	}
}
