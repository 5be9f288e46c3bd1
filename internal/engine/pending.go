// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// pending are the XRs that the queue was asked to run and that have not begun since,
// each with the best of the turns it was asked to have. The queue keeps an XR once,
// but it also keeps, until it gets to them, all requests that it was given: a storm
// fills it with millions that say the same, and whoever else is to run waits behind
// those.
//
// To leave out a request loses nothing. The XR is in the queue, or about to be, or on
// its way from there to a worker; its run begins later than the event and reads what
// is there by then.
type pending struct {
	mu    sync.Mutex
	turns map[types.NamespacedName]due // guarded by mu
}

// due is when a turn comes.
type due struct {
	at       time.Time
	priority int
}

// isBetter says that d would have an XR run sooner than other, in one way or another.
func (d due) isBetter(other due) bool { return d.at.Before(other.at) || d.priority > other.priority }

// ask notes that the XRs get such a turn, and returns those for which that is news.
func (p *pending) ask(turn due, xrs []types.NamespacedName) []reconcile.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	news := make([]reconcile.Request, 0, len(xrs))
	for _, xr := range xrs {
		known, ok := p.turns[xr]
		switch {
		case !ok:
			p.turns[xr] = turn
		case !turn.isBetter(known):
			continue
		default:
			p.turns[xr] = due{at: earlier(turn.at, known.at), priority: max(turn.priority, known.priority)}
		}
		news = append(news, reconcile.Request{NamespacedName: xr})
	}
	return news
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// begin returns the priority with which the XR was asked to run, if it was.
func (p *pending) begin(xr types.NamespacedName) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn := p.turns[xr]
	delete(p.turns, xr)
	return turn.priority
}

// beginner begins the runs of XRs, before anything is read for them.
type beginner struct {
	reconcile.Reconciler

	pending *pending
	busy    busy
}

func (b beginner) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if b.pending.begin(req.NamespacedName) == priorityBusy {
		defer b.busy.enter(ctx)()
	}
	return b.Reconciler.Reconcile(ctx, req)
}
