// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// +kubebuilder:rbac:groups=crosswatch.io,resources=dependencywatchstatuses,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=crosswatch.io,resources=dependencywatchstatuses/status,verbs=patch

const (
	// Heartbeat is after what time an object is written although nothing changed, so that one that is older has nobody who
	// writes it.
	Heartbeat = 5 * time.Minute
	// jitter is by what part an interval may be longer, so that objects that were written together, and replicas that were
	// started together, drift apart.
	jitter = 0.1
	// roundsPerInterval bounds how often what is common to all objects is looked up, however many of them there are.
	roundsPerInterval = 10
)

// Engine knows the XR controllers, each named after its XRD, and the watches in service.
type Engine interface {
	Controllers() []*engine.Controller
	Watches() []engine.WatchInfo
}

// Config is what a Publisher works with. All of it is required.
type Config struct {
	// Client reads XRDs, the metadata of CRDs and DependencyWatchStatuses from the cache, and writes the latter.
	Client client.Client
	Engine Engine
	// Operator is who publishes.
	Operator v1alpha1.OperatorInfo
	// Interval is the least time between two publications of an object.
	Interval time.Duration
	// Metrics is where the same is told as gauges.
	Metrics prometheus.Registerer
	Clock   clock.Clock
	Log     logr.Logger
}

func (c Config) validate() error {
	switch {
	case c.Client == nil:
		return errors.New("cannot publish dependency watch statuses without a client")
	case c.Engine == nil:
		return errors.New("cannot publish dependency watch statuses without an engine")
	case c.Operator.Version == "" || c.Operator.Leader == "":
		return errors.New("cannot publish dependency watch statuses without a version and an identity")
	case c.Interval <= 0:
		return errors.New("cannot publish dependency watch statuses without an interval")
	case c.Metrics == nil:
		return errors.New("cannot publish dependency watch statuses without a registry of metrics")
	case c.Clock == nil:
		return errors.New("cannot publish dependency watch statuses without a clock")
	}
	return nil
}

// Publisher keeps the DependencyWatchStatuses up to date, on the leader only.
type Publisher struct {
	client   client.Client
	engine   Engine
	operator v1alpha1.OperatorInfo
	interval time.Duration
	metrics  prometheus.Registerer
	clock    clock.Clock
	log      logr.Logger

	collector *collector
	// due is when each object is looked at next, by name: at least an interval after the last time, so that it is never written
	// more often. Only one goroutine, that of Start, uses it.
	due map[string]time.Time
	// behind are the objects whose last write failed. Start's goroutine alone uses it, too.
	behind map[string]bool
	// tried is when it was last tried to delete each object of no XRD; Start's goroutine alone uses it, too.
	tried map[string]time.Time
}

// NewPublisher returns a Publisher that publishes once it is started.
func NewPublisher(c Config) (*Publisher, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Publisher{
		client: c.Client, engine: c.Engine, operator: c.Operator, interval: c.Interval, metrics: c.Metrics, clock: c.Clock, log: c.Log,
		collector: &collector{engine: c.Engine, interval: c.Interval},
		due:       map[string]time.Time{},
		behind:    map[string]bool{},
	}, nil
}

// Setup adds a Publisher to the manager.
func Setup(mgr ctrl.Manager, c Config) error {
	p, err := NewPublisher(c)
	if err != nil {
		return err
	}
	if err := mgr.Add(p); err != nil {
		return fmt.Errorf("cannot set up the publisher of dependency watch statuses: %w", err)
	}
	return nil
}

// NeedLeaderElection is true: only the leader's trackers know what XRs depend on.
func (p *Publisher) NeedLeaderElection() bool { return true }

// Start publishes each object when it is due, until the context ends. What fails is tried again when it is due the next time.
func (p *Publisher) Start(ctx context.Context) error {
	if err := p.metrics.Register(p.collector); err != nil {
		return fmt.Errorf("cannot tell of dependency watch statuses as metrics: %w", err)
	}
	defer p.metrics.Unregister(p.collector)
	for {
		err := p.Publish(ctx)
		if err == nil && len(p.behind) == 0 {
			p.collector.succeeded.Store(p.clock.Now().UnixNano())
		}
		if err != nil && ctx.Err() == nil {
			p.log.Error(err, "Cannot publish dependency watch statuses")
		}
		timer := p.clock.NewTimer(p.pause())
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// pause is the time until the next object is due.
func (p *Publisher) pause() time.Duration {
	pause := p.interval
	for _, due := range p.due {
		pause = min(pause, due.Sub(p.clock.Now()))
	}
	return max(pause, p.interval/roundsPerInterval)
}

// Publish brings every DependencyWatchStatus up to date that is due, each on its own, and deletes those of XRDs that are gone. It
// must not be called concurrently.
func (p *Publisher) Publish(ctx context.Context) error {
	xrds, err := p.definitions(ctx)
	if err != nil {
		return err
	}
	published, err := p.published(ctx)
	if err != nil {
		return err
	}
	p.schedule(xrds, published)
	failed := []error{p.deleteStale(ctx, published)}

	wanted, err := p.wanted(ctx, xrds)
	failed = append(failed, err)
	for _, w := range wanted {
		err := p.write(ctx, w, published[w.name])
		failed = append(failed, err)
		p.note(w.name, err)
		p.due[w.name] = p.clock.Now().Add(wait.Jitter(p.interval, jitter))
	}
	return errors.Join(failed...)
}

// note remembers how the last write of the object went.
func (p *Publisher) note(name string, err error) {
	if err != nil {
		p.behind[name] = true
		return
	}
	delete(p.behind, name)
}

// definitions returns all XRDs in the order of their names. They belong to the cache and must not be changed.
func (p *Publisher) definitions(ctx context.Context) ([]*v1.CompositeResourceDefinition, error) {
	list := &v1.CompositeResourceDefinitionList{}
	if err := p.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list XRDs: %w", err)
	}
	xrds := make([]*v1.CompositeResourceDefinition, len(list.Items))
	for i := range list.Items {
		xrds[i] = &list.Items[i]
	}
	slices.SortFunc(xrds, func(a, b *v1.CompositeResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return xrds, nil
}

// published returns what is published by name. It belongs to the cache and must not be changed.
func (p *Publisher) published(ctx context.Context) (map[string]*v1alpha1.DependencyWatchStatus, error) {
	list := &v1alpha1.DependencyWatchStatusList{}
	if err := p.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list DependencyWatchStatuses: %w", err)
	}
	published := make(map[string]*v1alpha1.DependencyWatchStatus, len(list.Items))
	for i := range list.Items {
		published[list.Items[i].Name] = &list.Items[i]
	}
	return published, nil
}

// schedule adds the objects that there have to be to those that are looked at, and drops all others.
func (p *Publisher) schedule(xrds []*v1.CompositeResourceDefinition, published map[string]*v1alpha1.DependencyWatchStatus) {
	due := make(map[string]time.Time, len(xrds)+1)
	add := func(name string) {
		at, ok := p.due[name]
		if !ok {
			at = p.firstDue(published[name])
		}
		due[name] = at
	}
	add(v1alpha1.NameCluster)
	for _, xrd := range xrds {
		// The object of an XRD that is being deleted goes with it, maybe before it.
		if xrd.DeletionTimestamp == nil || published[xrd.Name] != nil {
			add(xrd.Name)
		}
	}
	p.due = due
	maps.DeleteFunc(p.behind, func(name string, _ bool) bool { _, ok := due[name]; return !ok })
}

// firstDue is when an object is due that this process has not written: an interval after whoever else wrote it. The API keeps
// whole seconds of that time, and the clock that it was taken from may be ahead of ours.
func (p *Publisher) firstDue(published *v1alpha1.DependencyWatchStatus) time.Time {
	now := p.clock.Now()
	if published == nil || published.Status.LastPublishedTime == nil {
		return now
	}
	written := published.Status.LastPublishedTime.Add(time.Second)
	if written.After(now) {
		written = now
	}
	return written.Add(p.interval)
}

// isDue says whether the object is to be looked at now. What would be due later than an interval can make it was put off before the
// clock was set back.
func (p *Publisher) isDue(name string) bool {
	due, ok := p.due[name]
	left := due.Sub(p.clock.Now())
	return ok && (left <= 0 || left > longest(p.interval))
}

// longest is how long an interval can be that is jittered.
func longest(interval time.Duration) time.Duration {
	return time.Duration(float64(interval) * (1 + jitter))
}

// deleteStale deletes the objects that nothing schedules, being those of no XRD. It tries each once an interval at most.
func (p *Publisher) deleteStale(ctx context.Context, published map[string]*v1alpha1.DependencyWatchStatus) error {
	var failed []error
	tried := make(map[string]time.Time, len(p.tried))
	for name, stale := range published {
		if _, ok := p.due[name]; ok || stale.DeletionTimestamp != nil {
			continue
		}
		tried[name] = p.tried[name]
		if ago := p.clock.Since(p.tried[name]); ago >= 0 && ago < p.interval {
			continue
		}
		tried[name] = p.clock.Now()
		if err := p.client.Delete(ctx, stale, client.Preconditions{UID: ptr.To(stale.UID)}); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("cannot delete DependencyWatchStatus %q, whose XRD is gone: %w", name, err))
		}
	}
	p.tried = tried
	return errors.Join(failed...)
}

// publication is what one DependencyWatchStatus should be.
type publication struct {
	name   string
	owner  *metav1.OwnerReference // nil if it has none
	status v1alpha1.DependencyWatchStatusStatus
}

// wanted returns what the objects that are due should be. That of all controllers together takes a look at each of them.
func (p *Publisher) wanted(ctx context.Context, xrds []*v1.CompositeResourceDefinition) ([]publication, error) {
	due := slices.DeleteFunc(slices.Clone(xrds), func(xrd *v1.CompositeResourceDefinition) bool { return !p.isDue(xrd.Name) })
	clusterDue := p.isDue(v1alpha1.NameCluster)
	if len(due) == 0 && !clusterDue {
		return nil, nil
	}
	seen := due
	if clusterDue {
		seen = xrds
	}
	v, err := look(seen, p.engine.Controllers(), p.engine.Watches, p.hasCRD(ctx))
	if err != nil {
		return nil, err
	}
	if clusterDue {
		p.collector.noteStalled(v.facts)
	}

	wanted := make([]publication, 0, len(due)+1)
	for i, xrd := range seen {
		if p.isDue(xrd.Name) {
			owner := metav1.NewControllerRef(xrd, v1.GroupVersion.WithKind(v1.KindCompositeResourceDefinition))
			wanted = append(wanted, publication{name: xrd.Name, owner: owner, status: statusOf(v.facts[i], v.byKind)})
		}
	}
	if clusterDue {
		wanted = append(wanted, publication{name: v1alpha1.NameCluster, status: clusterStatusOf(v, p.operator)})
	}
	return wanted, nil
}

func (p *Publisher) hasCRD(ctx context.Context) func(*v1.CompositeResourceDefinition) (bool, error) {
	return func(xrd *v1.CompositeResourceDefinition) (bool, error) {
		crd := &metav1.PartialObjectMetadata{}
		crd.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		err := p.client.Get(ctx, client.ObjectKey{Name: xrd.Name}, crd)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("cannot get CRD %q: %w", xrd.Name, err)
		}
		return metav1.IsControlledBy(crd, xrd), nil
	}
}
