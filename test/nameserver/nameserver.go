// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package nameserver answers DNS questions in tests, as a cluster's DNS does for
// headless Services, so that the names of functions lead to servers of the test.
package nameserver

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A Server answers for the names that it was given; all others don't exist. It
// is safe for concurrent use.
type Server struct {
	conn net.PacketConn

	mu        sync.Mutex              // guards addresses
	addresses map[string][]netip.Addr // by name
}

// asked is the server that this process asks, nil while no test has one. The
// resolver is replaced before anything runs: other goroutines read it whenever they
// connect to something.
var asked = replaceResolver()

func replaceResolver() *atomic.Pointer[Server] {
	server := &atomic.Pointer[Server]{}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if s := server.Load(); s != nil {
			network, address = "udp", s.conn.LocalAddr().String()
		}
		dialer := net.Dialer{}
		return dialer.DialContext(ctx, network, address)
	}}
	return server
}

// Start a server which this process asks for every name until the test ends. Tests
// that use one must not run in parallel.
func Start(t *testing.T) *Server {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{conn: conn, addresses: map[string][]netip.Addr{}}
	var serving sync.WaitGroup
	serving.Go(s.serve)
	asked.Store(s)
	t.Cleanup(func() {
		asked.CompareAndSwap(s, nil)
		_ = conn.Close()
		serving.Wait()
	})
	return s
}

// Set the IPv4 addresses of a name; with none, the name no longer exists. Whoever
// asks for a name within a domain is answered alike: "fn.ns" is also
// "fn.ns.svc.cluster.local".
func (s *Server) Set(name string, ips ...string) {
	addresses := make([]netip.Addr, 0, len(ips))
	for _, ip := range ips {
		addresses = append(addresses, netip.MustParseAddr(ip))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(addresses) == 0 {
		delete(s.addresses, name)
		return
	}
	s.addresses[name] = addresses
}

func (s *Server) find(question string) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, addresses := range s.addresses {
		if strings.HasPrefix(question, name+".") {
			return addresses
		}
	}
	return nil
}

func (s *Server) serve() {
	buffer := make([]byte, 512)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply, err := s.reply(buffer[:n]); err == nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

func (s *Server) reply(packet []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(packet)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}

	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true},
		Questions: []dnsmessage.Question{question},
	}
	addresses := s.find(question.Name.String())
	if len(addresses) == 0 {
		reply.RCode = dnsmessage.RCodeNameError
	}
	if question.Type == dnsmessage.TypeA {
		for _, a := range addresses {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.AResource{A: a.As4()},
			})
		}
	}
	return reply.Pack()
}
