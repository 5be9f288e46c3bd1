// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// handshakeTimeout bounds what a client that says nothing can hold up.
const handshakeTimeout = 10 * time.Second

// Proxy passes requests on to an API server, but for what is injected. All
// methods may be called concurrently.
type Proxy struct {
	config    *rest.Config // to reach the proxy
	address   *address
	identity  tls.Certificate
	transport *http.Transport
	forward   *httputil.ReverseProxy

	// serveLock guards serving. It is held while serving stops, so that whoever
	// else takes the proxy down waits for that, too.
	serveLock sync.Mutex
	serving   *serving // nil while the proxy is down

	mu         sync.Mutex
	injections []*Injection        // that act, in their order; guarded by mu
	draws      *rand.Rand          // guarded by mu
	watches    map[*stream]Request // that are open; guarded by mu
}

// Start starts a proxy to the API server that the client's configuration names,
// with nothing injected. The caller must Stop it.
func Start(client *rest.Config, seed uint64) (*Proxy, error) {
	if len(client.CertData) > 0 || client.CertFile != "" {
		return nil, errors.New("a proxy cannot pass a client's certificate on: use a configuration with a token")
	}
	target, _, err := rest.DefaultServerUrlFor(client)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API server's address: %w", err)
	}
	trusted, err := rest.TLSConfigFor(client)
	if err != nil {
		return nil, fmt.Errorf("cannot read whom the client trusts: %w", err)
	}
	address, err := reserve()
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		address:   address,
		transport: &http.Transport{TLSClientConfig: trusted, ForceAttemptHTTP2: true},
		draws:     rand.New(rand.NewPCG(seed, seed)),
		watches:   map[*stream]Request{},
	}
	p.forward = p.newForward(target)
	if err := errors.Join(p.identify(client), p.Up()); err != nil {
		return nil, errors.Join(err, address.release())
	}
	return p, nil
}

// identify makes the proxy's certificate, and the configuration that trusts it.
func (p *Proxy) identify(client *rest.Config) error {
	host, _, err := net.SplitHostPort(p.address.String())
	if err != nil {
		return fmt.Errorf("cannot split the proxy's address: %w", err)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return fmt.Errorf("cannot make the proxy's certificate: %w", err)
	}
	p.identity, err = tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("cannot read the proxy's certificate: %w", err)
	}
	p.config = rest.CopyConfig(client)
	p.config.Host = "https://" + p.address.String()
	p.config.TLSClientConfig = rest.TLSClientConfig{CAData: certificate}
	return nil
}

func (p *Proxy) newForward(target *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if p, ok := r.In.Context().Value(passageKey{}).(passage); ok && p.request.Verb == verbWatch {
				// A part of an event could not be put into a stream that is compressed.
				r.Out.Header.Set("Accept-Encoding", "identity")
			}
		},
		Transport:      p.transport,
		FlushInterval:  -1, // each event of a watch as it comes
		ModifyResponse: p.follow,
		// Whatever keeps the API server from answering looks as if there were no proxy: a connection that breaks.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
}

// Config is the client's configuration, changed to reach the API server by way of
// the proxy. The caller owns what it gets.
func (p *Proxy) Config() *rest.Config { return rest.CopyConfig(p.config) }

// Stop takes the proxy down for good and waits for what it serves.
func (p *Proxy) Stop() error {
	p.Down()
	p.transport.CloseIdleConnections()
	return p.address.release()
}

// Down breaks all connections, and refuses new ones until Up. It returns when
// nothing is served any more. Taking a proxy down that is down does nothing.
func (p *Proxy) Down() {
	p.serveLock.Lock()
	defer p.serveLock.Unlock()
	if p.serving == nil {
		return
	}
	p.serving.stop()
	p.serving = nil
}

// Up ends what Down began, at the same address. It does nothing to a proxy that
// is up.
func (p *Proxy) Up() error {
	p.serveLock.Lock()
	defer p.serveLock.Unlock()
	if p.serving != nil {
		return nil
	}
	listener, err := p.address.listen()
	if err != nil {
		return err
	}
	p.serving = serve(listener, p.identity, http.HandlerFunc(p.handle))
	return nil
}

// serving is the time from one Up to the next Down.
type serving struct {
	server *http.Server
	ended  chan struct{} // closed when the server accepts nothing more

	mu       sync.Mutex
	stopped  bool // guarded by mu: no handler begins afterwards
	handlers sync.WaitGroup
}

func serve(listener net.Listener, identity tls.Certificate, handler http.Handler) *serving {
	s := &serving{ended: make(chan struct{})}
	s.server = &http.Server{
		Handler:           s.counted(handler),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{identity}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: handshakeTimeout,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(s.ended)
		// It always ends with an error: that it was closed.
		_ = s.server.ServeTLS(listener, "", "")
	}()
	return s
}

// counted lets stop wait for requests, which closing a server does not.
func (s *serving) counted(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.begin() {
			panic(http.ErrAbortHandler)
		}
		defer s.handlers.Done()
		handler.ServeHTTP(w, r)
	})
}

func (s *serving) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.handlers.Add(1)
	return true
}

func (s *serving) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	// Requests end with their connections. That one was closed already is no error worth telling.
	_ = s.server.Close()
	<-s.ended
	s.handlers.Wait()
}

// handle lets the faults that pick a request act on it, and passes on what is left
// of it.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	request := requestOf(r)
	hits := p.hits(request)
	for _, hit := range hits {
		if !hit.act(w, r, request) {
			return
		}
	}
	ctx := context.WithValue(r.Context(), passageKey{}, passage{request: request, hits: hits})
	p.forward.ServeHTTP(w, r.WithContext(ctx))
}

// passage is what is known of a request when its answer comes.
type passage struct {
	request Request
	hits    []*Injection
}

type passageKey struct{}

// errLost makes the proxy break the connection in place of the answer.
var errLost = errors.New("the answer is lost")

// follow is called when the API server has answered.
func (p *Proxy) follow(answer *http.Response) error {
	passage, ok := answer.Request.Context().Value(passageKey{}).(passage)
	if !ok {
		return errors.New("the answer is to a request that nobody sent")
	}
	for _, hit := range passage.hits {
		if hit.fault.Lose {
			return errLost
		}
	}
	if passage.request.Verb == verbWatch && answer.StatusCode == http.StatusOK {
		answer.Body = p.open(passage.request, answer)
	}
	return nil
}
