// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Fault is what happens to requests. At least one of Delay, Hang, Status and Lose
// is set; what Delay is combined with happens afterwards.
type Fault struct {
	// On picks the requests that it may happen to; nil: all.
	On Predicate
	// Share is how many of these it does happen to, more than 0 and at most 1;
	// zero: all. Each request is drawn for on its own.
	Share float64

	// Delay is by how much the request is passed on, or answered, later.
	Delay time.Duration
	// Hang is that no answer comes, and no further event of a watch that is open,
	// until the fault is healed. What hung breaks then.
	Hang bool
	// Status is the code of the error that the request is answered with. The
	// API server never hears of it.
	Status int
	// RetryAfter is what goes with the Status, in whole seconds; zero: nothing.
	RetryAfter time.Duration
	// Lose is that the API server does what it is asked, and the connection breaks
	// before its answer. A watch that is open goes on.
	Lose bool
}

// Injection is a fault that acts, until it is healed.
type Injection struct {
	fault  Fault
	proxy  *Proxy
	hits   atomic.Int64
	healed chan struct{}
	heal   sync.Once
}

// Inject makes the fault happen from now on. It acts after those that were injected
// before it.
func (p *Proxy) Inject(fault Fault) *Injection {
	i := &Injection{fault: fault, proxy: p, healed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.injections = append(p.injections, i)
	return i
}

// Heal ends the fault. Healing it again does nothing.
func (i *Injection) Heal() {
	i.heal.Do(func() {
		i.proxy.remove(i)
		close(i.healed)
	})
}

// Hits is how many requests the fault has happened to.
func (i *Injection) Hits() int { return int(i.hits.Load()) }

func (p *Proxy) remove(healed *Injection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.injections = slices.DeleteFunc(p.injections, func(i *Injection) bool { return i == healed })
}

// hits returns the injections that happen to a request, if no earlier one of them
// ends it.
func (p *Proxy) hits(r Request) []*Injection {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hits []*Injection
	for _, i := range p.injections {
		if !i.fault.On.picks(r) {
			continue
		}
		if i.fault.Share > 0 && p.draws.Float64() >= i.fault.Share {
			continue
		}
		hits = append(hits, i)
	}
	return hits
}

// act lets the fault happen, as far as it does before the API server is asked, and
// says whether it still is to be.
func (i *Injection) act(w http.ResponseWriter, r *http.Request, request Request) bool {
	i.hits.Add(1)
	if i.fault.Delay > 0 && !i.delay(r) {
		panic(http.ErrAbortHandler)
	}
	if i.fault.Hang {
		select {
		case <-i.healed:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}
	if i.fault.Status != 0 {
		refuse(w, request, i.fault.Status, i.fault.RetryAfter)
		return false
	}
	return true
}

// delay waits, unless the fault is healed meanwhile. It returns false if the
// client gives up.
func (i *Injection) delay(r *http.Request) bool {
	timer := time.NewTimer(i.fault.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-i.healed:
	case <-r.Context().Done():
		return false
	}
	return true
}
