// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crosswatch-io/crosswatch/internal/breaker"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/store"
)

// Config is what an Engine works with. All fields but VerifyInterval, Timing and
// Breaker are required.
type Config struct {
	Dynamic   dynamic.Interface
	Discovery store.Discovery
	// Trackers holds each controller's tracker under the controller's name. It
	// outlives the controllers, so that a restart forgets nothing.
	Trackers *dependency.Registry
	// SweepInterval is the time between two sweeps.
	SweepInterval time.Duration
	// FailureTolerance is for how long an Active watch may fail without getting any
	// further before it counts as Failed.
	FailureTolerance time.Duration
	// VerifyInterval is the time between two checks that every XR was woken for
	// every change; zero checks never. It is longer than the delivery of an event
	// takes on a busy machine, and each XR's sights take memory.
	VerifyInterval time.Duration
	// Timing bounds the requests of watches. What is zero takes its default.
	Timing store.Timing
	// Breaker is when an XR that writes what somebody undoes is slowed, and how far;
	// if it is zero, none is.
	Breaker breaker.Settings
	Log     logr.Logger
}

// DefaultFailureTolerance is longer than a restart of an API server takes.
const DefaultFailureTolerance = time.Minute

// Engine runs XR controllers and the watches they share. Its methods may be
// called concurrently.
type Engine struct {
	dynamic       dynamic.Interface
	discovery     store.Discovery
	trackers      *dependency.Registry
	sweepInterval time.Duration
	// failureTolerance is that of the Config.
	failureTolerance time.Duration
	verifyInterval   time.Duration
	busy             busy
	timing           store.Timing
	breaker          breaker.Settings
	log              logr.Logger

	// ctx ends when Run does; everything the engine starts ends with it.
	ctx    context.Context
	cancel context.CancelFunc

	// mu orders recording a reference, registering with a watch, taking a watch
	// out of service and every change of a watch's state. Nothing is waited for
	// under it.
	mu          sync.Mutex
	controllers map[string]*Controller
	// former holds the runs of controllers that were stopped, by name, for as
	// long as their trackers are kept.
	former  map[string]map[types.NamespacedName]*run
	watches map[schema.GroupVersionKind]*watch
	stopped bool
	running sync.WaitGroup // one for each watch and controller; added to under mu while not stopped
}

// New returns an engine that runs nothing yet. What it starts ends with Run.
func New(c Config) *Engine {
	ctx, cancel := context.WithCancel(context.Background())
	return &Engine{
		dynamic:          c.Dynamic,
		discovery:        c.Discovery,
		trackers:         c.Trackers,
		sweepInterval:    c.SweepInterval,
		failureTolerance: c.FailureTolerance,
		verifyInterval:   c.VerifyInterval,
		busy:             newBusy(),
		timing:           c.Timing.OrDefaults(),
		breaker:          c.Breaker,
		log:              c.Log,
		ctx:              ctx,
		cancel:           cancel,
		controllers:      map[string]*Controller{},
		former:           map[string]map[types.NamespacedName]*run{},
		watches:          map[schema.GroupVersionKind]*watch{},
	}
}

// Run sweeps until ctx ends, then stops every controller and watch and waits
// for them.
func (e *Engine) Run(ctx context.Context) error {
	if e.verifyInterval > 0 {
		var verifying sync.WaitGroup
		defer verifying.Wait()
		verifying.Go(func() { e.verify(ctx) })
	}
	ticker := time.NewTicker(e.sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.Sweep()
		case <-ctx.Done():
			e.shutdown()
			return nil
		}
	}
}

func (e *Engine) shutdown() {
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
	e.cancel()
	e.running.Wait()
}

// errStopped means that the engine, or a controller of it, was asked for
// something after it had been stopped.
var errStopped = errors.New("the controller has stopped")

// Start starts the controller of an XR kind, or returns the one that runs. A
// controller of that name with another kind is stopped first; then what XRs
// depend on stays recorded and watched. The tracker that the registry holds under
// the name is kept. It is an error if the controller is stopped before it runs.
func (e *Engine) Start(name string, o ControllerOptions) (*Controller, error) {
	if running := e.makeWay(name, o.Kind); running != nil {
		return running, nil
	}
	defer e.Sweep() // only now is it known what the former controller alone needed
	c := newController(e, name, o.Kind)
	run, err := c.build(o)
	if err != nil {
		return nil, fmt.Errorf("cannot build the controller of %s: %w", kindText(o.Kind), err)
	}
	if err := e.launch(c, run); err != nil {
		return nil, err
	}
	select {
	case <-c.queueReady:
	case <-c.done:
	}
	if !e.serveAll(c) {
		e.stop(c)
		return nil, fmt.Errorf("cannot start the controller of %s: %w", kindText(o.Kind), errStopped)
	}
	return c, nil
}

// makeWay stops whatever controller has the name, and waits for it, but returns
// one that runs for the kind.
func (e *Engine) makeWay(name string, kind schema.GroupVersionKind) *Controller {
	for {
		e.mu.Lock()
		c, ok := e.controllers[name]
		wanted := ok && c.kind == kind && e.runsLocked(c)
		e.mu.Unlock()
		switch {
		case wanted:
			return c
		case !ok:
			return nil
		}
		e.stop(c)
	}
}

// launch registers the controller, which goes on from the runs of the one that
// had its name before it, and runs it in a goroutine of its own.
func (e *Engine) launch(c *Controller, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(e.ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		cancel()
		return errStopped
	}
	if _, ok := e.controllers[c.name]; ok {
		cancel()
		return fmt.Errorf("controller %q is being started or stopped already", c.name)
	}
	c.cancel = cancel
	c.tracker = e.trackers.Tracker(c.name)
	c.metrics = metricsOf(c.name)
	if runs, ok := e.former[c.name]; ok {
		c.runs = runs
		delete(e.former, c.name)
	}
	e.controllers[c.name] = c
	e.running.Go(func() {
		defer close(c.done)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			c.log.Error(err, "XR controller failed")
		}
	})
	return nil
}

// serveAll puts the watch of the XR kind itself into service, and those of the
// kinds that XRs were found to depend on before. If the former is live already,
// for others, the XRs are enqueued here; else when it is. It is false if the
// controller does not run.
func (e *Engine) serveAll(c *Controller) bool {
	e.mu.Lock()
	if !e.runsLocked(c) {
		e.mu.Unlock()
		return false
	}
	for _, gvk := range c.tracker.GVKs() {
		e.serveLocked(gvk, c)
	}
	w := e.serveLocked(c.kind, c)
	informer, live := w.informer, w.live
	e.mu.Unlock()
	if live {
		c.enqueueAll(informer)
	}
	return true
}

// Stop stops the controller and waits for its runs in progress. Its tracker
// stays in the registry. It is idempotent, and needs no watch to be live.
func (e *Engine) Stop(name string) {
	e.mu.Lock()
	c, ok := e.controllers[name]
	e.mu.Unlock()
	if ok {
		e.stop(c)
	}
	// What the controller alone needed is of no use now.
	e.Sweep()
}

// stop stops the controller. It keeps its name until it has ended, so that none
// of that name runs beside it, and whoever stops it, too, waits as well.
func (e *Engine) stop(c *Controller) {
	e.mu.Lock()
	c.stopping = true
	for _, w := range e.watches {
		w.keepLocked(func(u *Controller) bool { return u != c })
	}
	e.mu.Unlock()

	c.cancel()
	<-c.done
	e.mu.Lock()
	if e.controllers[c.name] == c {
		delete(e.controllers, c.name)
		e.former[c.name] = c.handOver()
	}
	e.mu.Unlock()
}

// Remove stops the controller and forgets its tracker.
func (e *Engine) Remove(name string) {
	e.Stop(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.controllers[name]; ok {
		return // it was started again meanwhile
	}
	delete(e.former, name)
	e.trackers.Delete(name)
	dropMetricsOf(name)
}

// Controller returns the running controller of that name.
func (e *Engine) Controller(name string) (*Controller, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.controllers[name]
	if !ok || !e.runsLocked(c) {
		return nil, false
	}
	return c, true
}

// Controllers returns the running controllers, sorted by name.
func (e *Engine) Controllers() []*Controller {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*Controller, 0, len(e.controllers))
	for _, c := range e.controllers {
		if e.runsLocked(c) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *Controller) int { return cmp.Compare(a.name, b.name) })
	return out
}

// runsLocked says that neither the controller nor the engine was stopped. The
// last runs of a controller may still be ending after it was. e.mu must be held.
func (e *Engine) runsLocked(c *Controller) bool {
	return !e.stopped && !c.stopping && e.controllers[c.name] == c
}

// serveLocked returns the kind's watch with the controller registered, and
// starts one if none is in service. e.mu must be held, and the controller run.
func (e *Engine) serveLocked(gvk schema.GroupVersionKind, c *Controller) *watch {
	w, ok := e.watches[gvk]
	if !ok {
		ctx, cancel := context.WithCancel(e.ctx)
		w = newWatch(gvk, e.log, cancel)
		e.watches[gvk] = w
		w.log.Info("Watch starting")
		watchStarts.Inc()
		watchTransitions.WithLabelValues(string(Starting)).Inc()
		e.running.Go(func() { e.runWatch(ctx, w) })
	}
	w.addLocked(c)
	return w
}

// Sweep takes every watch out of service that no controller needs, and waits
// until they have stopped. A controller needs the kind of its XRs, and every
// kind that its tracker holds a reference to.
func (e *Engine) Sweep() {
	e.mu.Lock()
	unneeded := e.unneededLocked()
	e.takeOutLocked(unneeded)
	e.mu.Unlock()

	for _, w := range unneeded {
		<-w.done
	}
}

// unneededLocked takes the controllers off each watch that don't need it, and
// returns the watches that none does. e.mu must be held, and until these are taken
// out of service.
func (e *Engine) unneededLocked() []*watch {
	var unneeded []*watch
	for gvk, w := range e.watches {
		needed := w.keepLocked(func(c *Controller) bool {
			return e.runsLocked(c) && (c.kind == gvk || c.tracker.HasKind(gvk))
		})
		if needed == 0 {
			unneeded = append(unneeded, w)
		}
	}
	return unneeded
}

func (e *Engine) takeOutLocked(unneeded []*watch) {
	for _, w := range unneeded {
		delete(e.watches, w.gvk)
		w.live = false
		w.setLocked(Stopping, "nothing refers to the kind any more")
		w.cancel()
		watchStops.Inc()
	}
}

// KindChanged tells that a CRD, named by its group and plural, came, changed or
// went. A watch that waits for a kind of that group tries again at once, and one
// of the CRD's own kind looks whether that is still what it was.
func (e *Engine) KindChanged(crd schema.GroupResource) {
	e.look(func(w *watch) bool { return w.concernsLocked(crd) })
}

// RulesChanged tells that the operator may be allowed more than before: watches
// that are Forbidden try again at once, and so do XRs of which a request was
// refused.
func (e *Engine) RulesChanged() {
	e.look(func(w *watch) bool { return w.state == Forbidden })
	for _, c := range e.Controllers() {
		c.retryRefused()
	}
}

// look has the watches that are chosen, under e.mu, ask the API server at once.
func (e *Engine) look(chosenLocked func(*watch) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.watches {
		if chosenLocked(w) {
			w.lookNow()
		}
	}
}

// WatchInfo describes a watch in service.
type WatchInfo struct {
	GVK     schema.GroupVersionKind
	State   State
	Message string
	// Store is how much is kept of each object; empty until they can be read.
	Store store.Mode
	// Objects is the number of objects that the watch's store holds.
	Objects int
	// Controllers is how many controllers need it.
	Controllers int
}

// Watches describes the watches in service, sorted by kind.
func (e *Engine) Watches() []WatchInfo {
	e.mu.Lock()
	out := make([]WatchInfo, 0, len(e.watches))
	informers := make(map[schema.GroupVersionKind]*store.Informer, len(e.watches))
	for _, w := range e.watches {
		out = append(out, w.infoLocked())
		if w.live {
			informers[w.gvk] = w.informer
		}
	}
	e.mu.Unlock()

	for i := range out {
		out[i].ask(informers[out[i].GVK])
	}
	slices.SortFunc(out, func(a, b WatchInfo) int { return dependency.CompareGVKs(a.GVK, b.GVK) })
	return out
}

// Watch describes the kind's watch; it is Starting if none is in service.
func (e *Engine) Watch(gvk schema.GroupVersionKind) WatchInfo {
	e.mu.Lock()
	w, ok := e.watches[gvk]
	if !ok {
		e.mu.Unlock()
		return WatchInfo{GVK: gvk, State: Starting}
	}
	info, informer, live := w.infoLocked(), w.informer, w.live
	e.mu.Unlock()
	if live {
		info.ask(informer)
	}
	return info
}

// infoLocked describes the watch but for what its informer says. Engine.mu must
// be held.
func (w *watch) infoLocked() WatchInfo {
	return WatchInfo{GVK: w.gvk, State: w.state, Message: w.message, Controllers: len(*w.users.Load())}
}

// ask adds what the informer of a live watch says.
func (i *WatchInfo) ask(informer *store.Informer) {
	if informer != nil {
		i.Objects, i.Store = informer.Len(), informer.Mode()
	}
}
