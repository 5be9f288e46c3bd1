// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// A Reconciler reconciles the XRs of one kind.
type Reconciler struct {
	config  Config
	session session
	memory  memory
}

// session is the controller of the kind, as the reconciler sees it.
type session interface {
	runs
	records
	composer.Recorder
	// Resource of the kind; false while its watch is out of service.
	Resource() (schema.GroupVersionResource, bool)
}

// runs knows the XRs, and which state of them a run may start from.
type runs interface {
	Begin(xr types.NamespacedName) (obj *unstructured.Unstructured, fresh bool)
	// Cause takes what woke the XR for this run, nil if no event did, and PutBack
	// leaves it to the next.
	Cause(xr types.NamespacedName) *engine.Cause
	PutBack(xr types.NamespacedName, cause *engine.Cause)
	// Refused has the XR tried again when the operator is allowed more.
	Refused(xr types.NamespacedName)
	Wrote(obj *unstructured.Unstructured)
	Settle(xr types.NamespacedName)
	// Ran ends a run: what it was for, and what it wrote. Circuit says how far the XR
	// is slowed because of such writes.
	Ran(xr types.NamespacedName, cause *engine.Cause, wrote []dependency.Reference)
	Circuit(xr types.NamespacedName) engine.Circuit
	// Reconciled counts a run by what it came to.
	Reconciled(result string)
}

// records holds what each XR depends on, as far as its run has to say so.
type records interface {
	Track(xr types.NamespacedName, composed []dependency.Reference, required []dependency.Requirement)
	Fail(xr types.NamespacedName)
	Forget(xr types.NamespacedName)
}

// NewReconciler returns the reconciler of a controller's XRs.
func NewReconciler(config Config, controller *engine.Controller) *Reconciler {
	return newReconciler(config, controlled{controller})
}

func newReconciler(config Config, s session) *Reconciler {
	return &Reconciler{config: config, session: s, memory: memory{byXR: map[types.NamespacedName]remembered{}}}
}

// What a reconcile comes to, as it is counted.
const (
	resultSynced    = "synced"
	resultFailed    = "failed"
	resultFatal     = "fatal"
	resultWaiting   = "waiting"
	resultPaused    = "paused"
	resultDeleting  = "deleting"
	resultForgotten = "forgotten"
	resultOutdated  = "outdated"
)

// Reconcile brings one XR to what its pipeline desires. It returns an error only
// if trying again later is what may help.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	stored, fresh := r.session.Begin(req.NamespacedName)
	resource, served := r.session.Resource()
	if !fresh || !served {
		return reconcile.Result{}, nil // an event that brings what is missing is on its way
	}
	cause := r.session.Cause(req.NamespacedName)
	logStart(ctx, cause)
	if stored == nil {
		r.forget(req.NamespacedName)
		r.session.Reconciled(resultForgotten)
		return reconcile.Result{}, nil
	}

	p := r.newPass(req.NamespacedName, stored, resource)
	p.cause = cause
	r.session.Reconciled(p.reconcile(ctx))
	r.session.Ran(req.NamespacedName, p.answered(), p.wrote())
	if (p.outdated || p.untold) && cause != nil {
		r.session.PutBack(req.NamespacedName, cause)
	}
	if isForbidden(p.err) {
		r.session.Refused(req.NamespacedName)
	}
	return p.requeue()
}

// logStart says what a run is for, to whoever follows one.
func logStart(ctx context.Context, cause *engine.Cause) {
	logger := log.FromContext(ctx).V(1)
	if !logger.Enabled() {
		return
	}
	if cause != nil {
		logger.Info("Reconciling", "wokenBy", cause.String())
		return
	}
	logger.Info("Reconciling, woken by no event")
}

// pass is the scope of one reconcile.
type pass struct {
	*Reconciler
	key      types.NamespacedName
	resource schema.GroupVersionResource

	// before is the XR as this pass found it, shared with the informer.
	before xr.XR
	// xr is the XR as it is stored by now, a copy that is the pass's own.
	xr xr.XR

	definition  *v1.CompositeResourceDefinition // by choose
	composition string                          // by choose
	revision    *v1.CompositionRevision         // by choose
	out         composer.Output                 // by compose
	conditions  []commonv1.Condition            // by writeStatus
	statusSent  bool                            // by writeStatus
	statusShown bool                            // by writeStatus: the XR shows the conditions
	wroteXR     bool                            // by stored

	// cause is what woke the XR, nil if no event did.
	cause *engine.Cause

	// gone says that the XR was deleted meanwhile.
	gone bool

	// outdated says that a write to the XR found another XR than this pass
	// started from.
	outdated bool

	// untold says that the run came to nothing, and that it is tried again before
	// anybody is told.
	untold bool

	// err is why the XR is not as it should be.
	err error
}

func (r *Reconciler) newPass(key types.NamespacedName, stored *unstructured.Unstructured, resource schema.GroupVersionResource) *pass {
	r.startOver(key, stored.GetUID())
	return &pass{
		Reconciler: r,
		key:        key,
		resource:   resource,
		before:     r.typed(stored),
		xr:         r.typed(stored.DeepCopy()),
	}
}

func (r *Reconciler) typed(obj *unstructured.Unstructured) xr.XR {
	return xr.New(obj, r.config.Scope == v1.ScopeLegacyCluster)
}

// reconcile does whichever of the three the XR is up for, and returns what that
// came to.
func (p *pass) reconcile(ctx context.Context) string {
	switch {
	case p.before.GetDeletionTimestamp() != nil:
		p.err = p.unlessOutdated(p.release(ctx))
		return p.resultOr(resultDeleting)
	case p.xr.Paused():
		p.err = p.unlessOutdated(p.pause(ctx))
		return p.resultOr(resultPaused)
	}
	p.err = p.unlessOutdated(p.run(ctx))
	if p.outdated {
		return resultOutdated // the XR is another by now: nobody needs to hear of this run
	}
	if p.untold = p.isTooEarlyToTell(); p.untold {
		return resultWaiting
	}
	p.err = p.writeStatus(ctx)
	if !p.outdated && !p.gone {
		p.tell()
	}
	return p.resultOr(resultSynced)
}

func (p *pass) resultOr(good string) string {
	var fatal *composer.FatalError
	switch {
	case p.outdated:
		return resultOutdated
	case p.err == nil:
		return good
	case isWaiting(p.err):
		return resultWaiting
	case errors.As(p.err, &fatal):
		return resultFatal
	}
	return resultFailed
}

// run goes through the phases that build on each other.
func (p *pass) run(ctx context.Context) error {
	for _, phase := range []func(context.Context) error{p.choose, p.claim, p.compose} {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	return nil
}

// compose takes the XR through its pipeline, and ends the run in the tracker. A
// run that failed forgets nothing.
func (p *pass) compose(ctx context.Context) error {
	var err error
	p.out, err = p.config.Composer.Compose(ctx, composer.Input{
		XR:       p.xr,
		Resource: p.resource,
		Scope:    p.config.Scope,
		Revision: p.revision,
		Record:   p.session,
	})
	if p.out.XR.Unstructured != p.xr.Unstructured {
		p.stored(p.out.XR.Unstructured)
	}
	if err != nil {
		p.session.Fail(p.key)
		return err
	}
	p.session.Track(p.key, p.out.Composed, p.out.Required)
	return nil
}

// stored takes what the API server answered to a write to the XR.
func (p *pass) stored(obj *unstructured.Unstructured) {
	p.xr = p.typed(obj)
	p.wroteXR = true
	p.session.Wrote(obj)
}

// answered returns what this pass answered with what it wrote: nothing if it took up
// another revision, whatever woke the XR for it. That a user or a tool took the reference
// to the revision away makes it no other.
func (p *pass) answered() *engine.Cause {
	if p.revision != nil && p.memory.takeUp(p.key, p.revision.Name) {
		return nil
	}
	return p.cause
}

// wrote returns all that this pass changed.
func (p *pass) wrote() []dependency.Reference {
	wrote := p.out.Wrote
	if p.wroteXR {
		wrote = append(wrote, dependency.Reference{
			GVK: p.before.GroupVersionKind(), Namespace: p.key.Namespace, Name: p.key.Name,
		})
	}
	return wrote
}
