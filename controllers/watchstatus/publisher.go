// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
)

// +kubebuilder:rbac:groups=crosswatch.io,resources=dependencywatchstatuses,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=crosswatch.io,resources=dependencywatchstatuses/status,verbs=get;update;patch

// Config is what a Publisher works with. All of it is required.
type Config struct {
	// Client reads XRDs and DependencyWatchStatuses from the cache, and writes the latter.
	Client client.Client
	Engine Engine
	// Interval between two publications.
	Interval time.Duration
	Clock    clock.WithTicker
	Log      logr.Logger
}

// Publisher keeps the DependencyWatchStatuses up to date, on the leader only.
type Publisher struct {
	client   client.Client
	engine   Engine
	interval time.Duration
	clock    clock.WithTicker
	log      logr.Logger
}

// NewPublisher returns a Publisher that publishes once it is started.
func NewPublisher(c Config) (*Publisher, error) {
	switch {
	case c.Client == nil:
		return nil, errors.New("cannot publish dependency watch statuses without a client")
	case c.Engine == nil:
		return nil, errors.New("cannot publish dependency watch statuses without an engine")
	case c.Interval <= 0:
		return nil, errors.New("cannot publish dependency watch statuses without an interval")
	case c.Clock == nil:
		return nil, errors.New("cannot publish dependency watch statuses without a clock")
	}
	return &Publisher{client: c.Client, engine: c.Engine, interval: c.Interval, clock: c.Clock, log: c.Log}, nil
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

// Start publishes at once, then after each interval, until the context ends. What fails is tried again the next time.
func (p *Publisher) Start(ctx context.Context) error {
	ticker := p.clock.NewTicker(p.interval)
	defer ticker.Stop()
	for {
		if err := p.Publish(ctx); err != nil && ctx.Err() == nil {
			p.log.Error(err, "Cannot publish dependency watch statuses")
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// Publish brings every DependencyWatchStatus up to date, each on its own, and deletes those of XRDs that have no XR controller
// any more.
func (p *Publisher) Publish(ctx context.Context) error {
	xrds := &v1.CompositeResourceDefinitionList{}
	if err := p.client.List(ctx, xrds); err != nil {
		return fmt.Errorf("cannot list XRDs: %w", err)
	}
	published := &v1alpha1.DependencyWatchStatusList{}
	if err := p.client.List(ctx, published); err != nil {
		return fmt.Errorf("cannot list DependencyWatchStatuses: %w", err)
	}
	slices.SortFunc(xrds.Items, func(a, b v1.CompositeResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	present := make(map[string]*v1alpha1.DependencyWatchStatus, len(published.Items))
	for i := range published.Items {
		present[published.Items[i].Name] = &published.Items[i]
	}

	var failed []error
	for _, w := range p.wanted(xrds.Items) {
		failed = append(failed, p.write(ctx, w, present[w.name]))
		delete(present, w.name)
	}
	for name, stale := range present {
		if err := p.client.Delete(ctx, stale, client.Preconditions{UID: ptr.To(stale.UID)}); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("cannot delete DependencyWatchStatus %q: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// publication is what one DependencyWatchStatus should be.
type publication struct {
	name   string
	owners []metav1.OwnerReference
	status v1alpha1.DependencyWatchStatusStatus
	facts  []Facts
}

func (p *Publisher) wanted(xrds []v1.CompositeResourceDefinition) []publication {
	watches := p.engine.Watches()
	all := factsOf(xrds, p.engine.Controllers(), watches)
	owners := make(map[string]metav1.OwnerReference, len(xrds))
	for i := range xrds {
		owners[xrds[i].Name] = *metav1.NewControllerRef(&xrds[i], v1.GroupVersion.WithKind(v1.KindCompositeResourceDefinition))
	}

	wanted := make([]publication, 0, len(all)+1)
	for _, f := range all {
		wanted = append(wanted, publication{
			name:   f.XRD,
			owners: []metav1.OwnerReference{owners[f.XRD]},
			status: StatusOf(f, watches),
			facts:  []Facts{f},
		})
	}
	return append(wanted, publication{name: v1alpha1.NameCluster, status: ClusterStatusOf(all, watches), facts: all})
}
