// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

// reacts bounds how long a change may take to reach an XR that has nothing to do
// with a function that misbehaves. Without one it takes some 20 ms.
const reacts = 2 * time.Second

// hostile is a function that may answer any bytes, behind a proxy that may do
// anything to them.
type hostile struct {
	*proxy
	calls atomic.Int64
}

// rawCodec passes messages on as they are on the wire.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = slices.Clone(b); return nil }
func (rawCodec) Name() string                    { return "proto" }

// hostile serves a function behind mutual TLS, and makes it known.
func (w *world) hostile(name string, run func(*hostile, *fnv1.RunFunctionRequest) ([]byte, error)) *hostile {
	w.t.Helper()
	secure, err := cluster.FunctionTLS()
	w.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	h := &hostile{}
	answer := func(_ any, stream grpc.ServerStream) error {
		raw, req := []byte(nil), &fnv1.RunFunctionRequest{}
		if err := errors.Join(stream.RecvMsg(&raw), proto.Unmarshal(raw, req)); err != nil {
			return err
		}
		h.calls.Add(1)
		out, err := run(h, req)
		if err != nil {
			return err
		}
		return stream.SendMsg(&out)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(secure)), grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(answer))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	w.t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	h.proxy = w.proxy(listener.Addr().String())
	w.announce(name, h.address)
	return h
}

// proxy passes connections on, and from some moment on does harm to what comes
// back on those that are open then.
type proxy struct {
	address string

	mu   sync.Mutex // guards open, and the harm of each
	open []*passed
}

type passed struct {
	client *net.TCPConn
	server net.Conn
	harm   func(client *net.TCPConn, answer []byte) error
}

func (w *world) proxy(to string) *proxy {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	p := &proxy{address: listener.Addr().String()}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			conn := &passed{client: client.(*net.TCPConn), server: server}
			p.keep(conn)
			passing.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
			passing.Go(func() { p.back(conn) })
		}
	})
	w.t.Cleanup(func() {
		_ = listener.Close()
		p.hangUp()
		passing.Wait()
	})
	return p
}

func (p *proxy) keep(conn *passed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, conn)
}

// hangUp closes all connections, as the end of a process does.
func (p *proxy) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		_, _ = conn.client.Close(), conn.server.Close()
	}
	p.open = nil
}

func (p *proxy) does(harm func(client *net.TCPConn, answer []byte) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		conn.harm = harm
	}
}

func (p *proxy) back(conn *passed) {
	client := conn.client
	defer func() { _ = client.Close() }()
	buffer := make([]byte, 4096)
	for {
		n, err := conn.server.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		harm := conn.harm
		p.mu.Unlock()
		if harm == nil {
			_, err = client.Write(buffer[:n])
		} else {
			err = harm(client, buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// drip passes an answer on more slowly than anybody waits.
func drip(client *net.TCPConn, answer []byte) error {
	for i := range answer {
		if _, err := client.Write(answer[i : i+1]); err != nil {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
	return nil
}

// reset passes the first bytes on, and then resets the connection.
func reset(client *net.TCPConn, answer []byte) error {
	_, _ = client.Write(answer[:min(len(answer), 100)])
	return errors.Join(client.SetLinger(0), client.Close(), net.ErrClosed)
}

func encoded(rsp *fnv1.RunFunctionResponse) ([]byte, error) { return proto.Marshal(rsp) }

func deep(levels int) *structpb.Struct {
	s := &structpb.Struct{}
	for range levels {
		s = &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewStructValue(s)}}
	}
	return s
}

// desiring answers with one desired resource.
func desiring(req *fnv1.RunFunctionRequest, name, metadataName string, spec *structpb.Value) ([]byte, error) {
	rsp := respond.To(req)
	respond.TTL(rsp, 0) // each try is a call
	respond.Desire(rsp, name, gadget(metadataName, nil), fnv1.Ready_READY_TRUE)
	if spec != nil {
		rsp.Desired.Resources[name].Resource.Fields["spec"] = spec
	}
	return encoded(rsp)
}

// A misdeed is what a hostile function does, and what is said of it, up to the API
// server's own words. %s is where the function is called, %n the test's namespace.
type misdeed struct {
	run   func(*hostile, *fnv1.RunFunctionRequest) ([]byte, error)
	words string
}

const callTimeout = 3 * time.Second

func misdeeds(released <-chan struct{}) map[string]misdeed {
	huge := make([]byte, 100<<20)
	call := `pipeline: step "hostile": function "hostile" at %s: `
	// To encode it takes longer than a call may.
	abyss := sync.OnceValues(func() ([]byte, error) {
		return desiring(&fnv1.RunFunctionRequest{}, "it", "it", structpb.NewStructValue(deep(10_000)))
	})
	response := `pipeline: step "hostile": response of function "hostile": `
	return map[string]misdeed{
		"crashes": {
			run: func(h *hostile, _ *fnv1.RunFunctionRequest) ([]byte, error) {
				h.hangUp()
				return nil, status.Error(codes.Unavailable, "nobody hears this")
			},
			words: call + "unavailable: the connection broke during the call: did the function crash?",
		},
		"panics and recovers": {
			run: func(*hostile, *fnv1.RunFunctionRequest) ([]byte, error) {
				return nil, status.Errorf(codes.Internal, "panic: nil map at %p", new(int))
			},
			words: call + "internal: panic: nil map at 0x…",
		},
		"hangs": {
			run: func(*hostile, *fnv1.RunFunctionRequest) ([]byte, error) {
				<-released
				return nil, nil
			},
			words: call + "deadline exceeded: no answer within 3s",
		},
		"drips": {
			run: func(h *hostile, req *fnv1.RunFunctionRequest) ([]byte, error) {
				h.does(drip)
				rsp := respond.To(req)
				respond.Context(rsp, "x", strings.Repeat("x", 4000))
				return encoded(rsp)
			},
			words: call + "deadline exceeded: no answer within 3s",
		},
		"resets the connection": {
			run: func(h *hostile, req *fnv1.RunFunctionRequest) ([]byte, error) {
				h.does(reset)
				rsp := respond.To(req)
				respond.Context(rsp, "x", strings.Repeat("x", 1<<20))
				return encoded(rsp)
			},
			words: call + "unavailable: the connection broke during the call: did the function crash?",
		},
		"answers another request": {
			run: func(*hostile, *fnv1.RunFunctionRequest) ([]byte, error) {
				return encoded(&fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: "another's"}})
			},
			words: response + "its tag is that of another request: the function must return the tag of the request it answers, or none",
		},
		"answers 100 MiB": {
			run:   func(*hostile, *fnv1.RunFunctionRequest) ([]byte, error) { return huge, nil },
			words: call + "resource exhausted: the response is larger than the limit of 64 MiB",
		},
		"answers what is no message": {
			run: func(*hostile, *fnv1.RunFunctionRequest) ([]byte, error) {
				return []byte("<html>502 Bad Gateway</html>"), nil
			},
			words: call + "internal: what it answered is no response of a composition function, is nested too deeply to be read, or broke off",
		},
		"desires what is no number": {
			run: func(_ *hostile, req *fnv1.RunFunctionRequest) ([]byte, error) {
				return desiring(req, "it", "it", structpb.NewNumberValue(math.NaN()))
			},
			words: response + `desired resource "it": field "spec": it holds a number that is not finite`,
		},
		"desires what is nested 2,000 deep": {
			run: func(_ *hostile, req *fnv1.RunFunctionRequest) ([]byte, error) {
				return desiring(req, "it", "it", structpb.NewStructValue(deep(2000)))
			},
			words: response + `desired resource "it": field "spec": it is nested more than 1000 deep`,
		},
		"desires what is nested 10,000 deep": {
			run:   func(*hostile, *fnv1.RunFunctionRequest) ([]byte, error) { return abyss() },
			words: call + "internal: what it answered is no response of a composition function, is nested too deeply to be read, or broke off",
		},
		"desires what has no name": {
			run: func(_ *hostile, req *fnv1.RunFunctionRequest) ([]byte, error) {
				return desiring(req, "", "it", nil)
			},
			words: response + `desired resource "": its name is empty`,
		},
		"desires what has a name for terminals": {
			run: func(_ *hostile, req *fnv1.RunFunctionRequest) ([]byte, error) {
				return desiring(req, "\x1b[2J", "it", nil)
			},
			words: response + `desired resource "\x1b[2J": its name holds control characters`,
		},
		"desires an object whose name is none": {
			run: func(_ *hostile, req *fnv1.RunFunctionRequest) ([]byte, error) {
				return desiring(req, "it", "No Name!", nil)
			},
			words: `resource "it": cannot apply e2e.crosswatch.io/v1 Gadget "%n/No Name!": Invalid: metadata.name: Invalid value: "No Name!": `,
		},
	}
}

// An offender is a function that misbehaves, and the XR that uses it.
type offender struct {
	*hostile
	xr    *unstructured.Unstructured
	words string

	// What was told of it first.
	said    map[string]any
	version string
	calls   int64
}

// Whatever functions do, the XRs that use them say it in one and the same way for
// as long as they do, and no other XR is slower for it.
func TestFunctionsThatMisbehaveHarmOnlyTheirOwnXRs(t *testing.T) {
	leavesNoGoroutine(t)
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	w := newWorld(t)
	w.operate(retryAfter(time.Second), func(o *app.Options, _ *rest.Config) { o.FunctionCallTimeout = callTimeout })
	b := w.bystanders(1)
	offenders := map[string]*offender{}
	for name, tc := range misdeeds(released) {
		offenders[name] = w.offender(b.kinds[0], fmt.Sprintf("hostile-%d", len(offenders)), tc)
	}
	for _, o := range offenders {
		o.told(w)
	}
	b.react(w, 40)
	for name, o := range offenders {
		t.Run(name, func(t *testing.T) { o.goesOn(t, w) })
	}
}

// offender serves a function that does the misdeed, and creates an XR of the kind
// that uses it.
func (w *world) offender(kind schema.GroupVersionKind, name string, does misdeed) *offender {
	w.t.Helper()
	o := &offender{hostile: w.hostile(name, does.run)}
	o.xr = w.xr(kind, name, composedBy(w.composeAlso(kind, name, step(name, nil))))
	_, port, _ := net.SplitHostPort(o.address)
	o.words = strings.NewReplacer(
		`"hostile"`, strconv.Quote(name), "%s", "dns:///"+installation.FunctionHost+":"+port, "%n", w.namespace,
	).Replace(does.words)
	return o
}

// told waits until the XR says what its function does.
func (o *offender) told(w *world) {
	w.t.Helper()
	w.eventually("the misdeed to be told", func() (bool, string) {
		o.said = w.conditionOf(o.xr, "Synced")
		message, _ := o.said["message"].(string)
		return o.said["status"] == "False" && o.said["reason"] == "ReconcileError" && strings.HasPrefix(message, o.words),
			fmt.Sprintf("%v, want %s", o.said, o.words)
	})
	o.version, o.calls = w.live(o.xr).GetResourceVersion(), o.hostile.calls.Load()
}

// goesOn waits until the function was called again, and fails if that changed what
// is told.
func (o *offender) goesOn(t *testing.T, w *world) {
	t.Helper()
	w.eventually("more tries", func() (bool, string) {
		calls := o.hostile.calls.Load()
		return calls >= o.calls+2, strconv.FormatInt(calls, 10)
	})
	if live := w.live(o.xr); live.GetResourceVersion() != o.version {
		t.Errorf("what is said changes from %v to %v", o.said, conditionIn(live, "Synced"))
	}
}

// leavesNoGoroutine fails the test if one is left when all that it cleans up after
// this is.
func leavesNoGoroutine(t *testing.T) {
	t.Helper()
	leaks := []goleak.Option{
		goleak.IgnoreCurrent(),
		// The watch of a metadata informer that stops with an event on its way waits for ever: a fault of the client library.
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
		// Clients that tests share connect to the API server anew now and then. Connections to functions are others.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
	}
	t.Cleanup(func() { goleak.VerifyNone(t, leaks...) })
}

// bystanders are XRs of two kinds whose function behaves.
type bystanders struct {
	kinds []schema.GroupVersionKind
	xrs   []*unstructured.Unstructured
	round int
}

// bystanders of two kinds, so many of each, that each require a ConfigMap of their
// own. There can be other XRs and Compositions of the kinds.
func (w *world) bystanders(many int) *bystanders {
	w.t.Helper()
	b := &bystanders{kinds: []schema.GroupVersionKind{w.shared(sample), w.shared(bystander)}}
	w.function("sound", reader)
	for _, kind := range b.kinds {
		composition := w.composeAlso(kind, "sound", step("sound", nil))
		w.outgrow(kind)
		for i := range many {
			name := fmt.Sprintf("beside-%s-%d", strings.ToLower(kind.Kind), i)
			w.create(w.configMap(name, nil, map[string]string{"value": "none"}))
			spec := composedBy(composition)
			spec["settings"] = name
			b.xrs = append(b.xrs, w.xr(kind, name, spec))
		}
	}
	w.ready(b.xrs...)
	return b
}

// react changes what the bystanders require, one after the other, and fails unless
// each change is answered in time. It logs how long it took.
func (b *bystanders) react(w *world, times int) {
	w.t.Helper()
	var took []time.Duration
	for range times {
		xr := b.xrs[b.round%len(b.xrs)]
		b.round++
		value := strconv.Itoa(b.round)
		update(w, w.configMap(xr.GetName(), nil, nil), func(c *configMap) { c.Data = map[string]string{"value": value} })
		took = append(took, w.eventually("the bystander's reaction", w.has(xr, value, "status", "value")))
	}
	slices.Sort(took)
	slowest := took[len(took)-1]
	w.t.Logf("bystanders reacted to %d changes within %s, to half of them within %s", times,
		slowest.Round(time.Millisecond), took[len(took)/2].Round(time.Millisecond))
	if slowest > reacts {
		w.t.Errorf("that is more than %s", reacts)
	}
}

// composeAlso makes one of several Compositions of a kind, and returns its name.
func (w *world) composeAlso(kind schema.GroupVersionKind, name string, steps ...v1.PipelineStep) string {
	w.t.Helper()
	c := installation.Composition(kind, steps...)
	c.Name += "-" + name + "-" + w.namespace
	w.create(c)
	return c.Name
}

// composedBy is the spec of an XR that names its Composition.
func composedBy(composition string) map[string]any {
	return map[string]any{"crossplane": map[string]any{"compositionRef": map[string]any{"name": composition}}}
}

// A function that hangs takes no more than a share of its kind's workers, though
// more XRs call it than there are workers.
func TestAFunctionThatHangsLeavesWorkersToOthersOfItsKind(t *testing.T) {
	const many = 40
	leavesNoGoroutine(t)
	w := newWorld(t)
	w.operate(retryAfter(time.Second), func(o *app.Options, _ *rest.Config) { o.FunctionCallTimeout = 4 * reacts })
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	b := w.bystanders(5)
	hanging := w.function("hanging", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		<-released
		return respond.To(req), nil
	})
	composition := w.composeAlso(b.kinds[0], "hanging", step("hanging", nil))
	w.concurrently(many, func(i int) error {
		xr := w.object(b.kinds[0], fmt.Sprintf("hanging-%d", i))
		xr.Object["spec"] = composedBy(composition)
		return w.admin.Create(t.Context(), xr)
	})
	xrs := &crowd{w: w, kind: b.kinds[0], name: "hanging", many: many}
	t.Cleanup(xrs.remove)
	w.fails(xrs.xr(many-1), "function \"hanging\" at ")

	b.react(w, 40)
	if calls := hanging.TotalCalls(); calls > many {
		t.Errorf("the function that hangs was called %d times", calls)
	}
}
