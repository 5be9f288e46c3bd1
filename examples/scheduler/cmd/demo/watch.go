// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// patience is how long any result may take before the demo gives up.
	patience = 30 * time.Second
	// quietTime is how long nothing has to change for the system to be at rest.
	quietTime = 150 * time.Millisecond
)

// sight is something to be seen of one object.
type sight struct {
	resource        schema.GroupVersionResource
	namespace, name string
	// what is seen, in words that follow "waited for".
	what string
	seen func(*unstructured.Unstructured) bool
}

// await returns as soon as something is to be seen.
func (s *stage) await(ctx context.Context, g sight) error {
	_, err := s.time(ctx, g, nil)
	return err
}

// time makes a change and returns how long it took from just before that until
// a watch that was open already showed the result. Without a change it returns
// once the result is there.
func (s *stage) time(ctx context.Context, g sight, change func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it did not come within %s", patience))
	defer cancel()
	selector := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", g.name).String()}
	list, err := s.client.Resource(g.resource).Namespace(g.namespace).List(ctx, selector)
	if err != nil {
		return 0, fmt.Errorf("waited for %s: %w", g.what, err)
	}
	for i := range list.Items {
		if !g.seen(&list.Items[i]) {
			continue
		}
		if change != nil {
			return 0, fmt.Errorf("%s was there before the change that leads to it", g.what)
		}
		return 0, nil
	}

	selector.ResourceVersion = list.GetResourceVersion()
	events, err := s.client.Resource(g.resource).Namespace(g.namespace).Watch(ctx, selector)
	if err != nil {
		return 0, fmt.Errorf("waited for %s: %w", g.what, err)
	}
	defer events.Stop()
	start := time.Now()
	if change != nil {
		if err := change(ctx); err != nil {
			return 0, fmt.Errorf("change that leads to %s: %w", g.what, err)
		}
	}
	if err := g.until(ctx, events.ResultChan()); err != nil {
		return 0, fmt.Errorf("waited for %s: %w", g.what, err)
	}
	return time.Since(start), nil
}

// until reads events until one shows what is to be seen. If none does, the error
// has what the object complained of last.
func (g sight) until(ctx context.Context, events <-chan watch.Event) error {
	complaints := ""
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w%s", context.Cause(ctx), complaints)
		case event, open := <-events:
			if !open {
				// The watch ends with the context, too, and may be seen to first.
				return errors.Join(errors.New("the watch ended"), context.Cause(ctx))
			}
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			if g.seen(object) {
				return nil
			}
			complaints = complaintsOf(object)
		}
	}
}

// rest returns once no deployment and no replica has changed for a while.
func (s *stage) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("objects kept changing for %s", patience))
	defer cancel()
	changes := make(chan struct{})
	for _, resource := range []schema.GroupVersionResource{deployments, replicas} {
		events, err := s.changes(ctx, resource)
		if err != nil {
			return fmt.Errorf("wait for rest: %w", err)
		}
		defer events.Stop()
		go forward(ctx, events.ResultChan(), changes)
	}
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for rest: %w", context.Cause(ctx))
		case <-changes:
			quiet.Reset(quietTime)
		case <-quiet.C:
			return nil
		}
	}
}

// changes watches a resource in all namespaces from now on.
func (s *stage) changes(ctx context.Context, resource schema.GroupVersionResource) (watch.Interface, error) {
	list, err := s.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	return s.client.Resource(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
}

// forward passes on that there was an event, until the events or the context end.
func forward(ctx context.Context, events <-chan watch.Event, changes chan<- struct{}) {
	for range events {
		select {
		case changes <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}
