// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// How says in what way a watch ends.
type How int

// The ways in which Cut ends watches.
const (
	Regularly How = iota // as an API server ends a watch that is open long enough
	Abruptly             // the connection breaks, between two events
	MidObject            // the connection breaks, in the midst of an event
)

// Cut ends the open watches that the predicate picks, and returns how many those
// were. Clients are free to watch again at once.
func (p *Proxy) Cut(how How, on Predicate) int {
	p.mu.Lock()
	var cut []*stream
	for s, request := range p.watches {
		if on.picks(request) {
			cut = append(cut, s)
		}
	}
	p.mu.Unlock()
	for _, s := range cut {
		s.cut(how)
	}
	return len(cut)
}

// Watching returns how many of the open watches the predicate picks.
func (p *Proxy) Watching(on Predicate) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, request := range p.watches {
		if on.picks(request) {
			n++
		}
	}
	return n
}

// open returns the body of a watch's answer, made such that it can be cut.
func (p *Proxy) open(r Request, answer *http.Response) io.ReadCloser {
	s := &stream{
		proxy: p, request: r, source: answer.Body,
		gone: answer.Request.Context().Done(), fragment: fragmentOf(answer.Header.Get("Content-Type")),
		ended: make(chan struct{}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[s] = r
	return s
}

// holds returns the injection by which nothing more arrives of a watch, nil if none
// does.
func (p *Proxy) holds(r Request) *Injection {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.injections {
		if i.fault.Hang && i.fault.On.picks(r) {
			return i
		}
	}
	return nil
}

// fragmentOf returns the first half of an event in the encoding of a watch.
func fragmentOf(contentType string) []byte {
	if strings.Contains(contentType, "protobuf") {
		// Each event has its length before it, in four bytes.
		return []byte{0, 0, 0, 100, 'k', '8', 's', 0, 10}
	}
	return []byte(`{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Conf`)
}

var errCut = errors.New("the watch is cut")

// stream is the body of an open watch. One goroutine reads it; cut may come from
// any.
type stream struct {
	proxy    *Proxy
	request  Request
	source   io.ReadCloser
	gone     <-chan struct{} // closed when the client is
	fragment []byte

	mu    sync.Mutex
	how   How           // the stream ended; guarded by mu
	last  []byte        // to be sent yet when ended is closed; guarded by mu
	ended chan struct{} // closed, under mu, when the stream is cut
}

func (s *stream) cut(how How) {
	s.end(how)
	// It makes a read that waits return. What it fails with has no meaning here.
	_ = s.source.Close()
}

func (s *stream) end(how How) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
		return
	default:
	}
	s.how = how
	if how == MidObject {
		s.last = s.fragment
	}
	close(s.ended)
}

// Read implements io.Reader.
func (s *stream) Read(into []byte) (int, error) {
	n, err := s.source.Read(into)
	if held := s.proxy.holds(s.request); held != nil {
		select {
		case <-held.healed:
			return 0, errCut
		case <-s.ended:
		case <-s.gone:
		}
	}
	select {
	case <-s.ended:
		return s.rest(into)
	default:
		return n, err
	}
}

// rest returns what is to be sent of a watch that is cut.
func (s *stream) rest(into []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.how == Regularly {
		return 0, io.EOF
	}
	if len(s.last) == 0 {
		return 0, errCut
	}
	n := copy(into, s.last)
	s.last = s.last[n:]
	return n, nil
}

// Close implements io.Closer. It is called when the client is gone, or when nothing
// comes any more.
func (s *stream) Close() error {
	s.proxy.forget(s)
	return s.source.Close()
}

func (p *Proxy) forget(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watches, s)
}
