// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"k8s.io/utils/clock"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

const (
	// indexAge is for how long the API server's index of schemas is relied on.
	// Schemas that no CustomResourceDefinition defines change when the API server
	// is upgraded, or one that it aggregates.
	indexAge = 10 * time.Minute

	// missAge is the same for a kind that isn't found.
	missAge = time.Minute

	// fetchTimeout limits one request to the API server.
	fetchTimeout = 10 * time.Second
)

// published is what the API server publishes about kinds that no
// CustomResourceDefinition defines. A schema is fetched once for each hash that
// the index has for it, a resolved schema is kept, its document is not.
type published struct {
	client  openapi.ClientWithContext
	clock   clock.PassiveClock
	flights singleflight.Group

	mu      sync.Mutex // guards what follows; not held while fetching
	index   map[string]openapi.GroupVersionWithContext
	indexed time.Time
	schemas map[schema.GroupVersionKind]publishedSchema
}

type publishedSchema struct {
	url    string       // names the content by its hash
	schema *fnv1.Schema // nil if the kind isn't there
}

func newPublished(client openapi.Client, c clock.PassiveClock) *published {
	return &published{
		client:  openapi.ToClientWithContext(client),
		clock:   c,
		schemas: map[schema.GroupVersionKind]publishedSchema{},
	}
}

// schema of the kind; nil if the API server doesn't publish one.
func (p *published) schema(ctx context.Context, kind schema.GroupVersionKind) (*fnv1.Schema, error) {
	found, err := p.lookUp(ctx, kind, indexAge)
	if found == nil && err == nil {
		found, err = p.lookUp(ctx, kind, missAge)
	}
	return found, err
}

// lookUp the kind in an index that is not older than age.
func (p *published) lookUp(ctx context.Context, kind schema.GroupVersionKind, age time.Duration) (*fnv1.Schema, error) {
	if err := p.refresh(ctx, age); err != nil {
		return nil, err
	}
	p.mu.Lock()
	document, ok := p.index[documentPath(kind.GroupVersion())]
	cached := p.schemas[kind]
	p.mu.Unlock()
	if !ok {
		return nil, nil
	}
	if cached.url == document.ServerRelativeURL() {
		return cached.schema, nil
	}

	fetched, err, _ := p.flights.Do(kind.String(), func() (any, error) {
		return p.fetch(ctx, document, kind)
	})
	if err != nil {
		return nil, err
	}
	found, _ := fetched.(*fnv1.Schema)
	return found, nil
}

// refresh the index if it is older than age.
func (p *published) refresh(ctx context.Context, age time.Duration) error {
	p.mu.Lock()
	fresh := p.index != nil && p.clock.Since(p.indexed) <= age
	p.mu.Unlock()
	if fresh {
		return nil
	}

	_, err, _ := p.flights.Do("", func() (any, error) {
		ctx, cancel := shared(ctx)
		defer cancel()
		now := p.clock.Now()
		index, err := p.client.PathsWithContext(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot get the API server's index of schemas: %w", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.index, p.indexed = index, now
		return nil, nil
	})
	return err
}

func (p *published) fetch(ctx context.Context, document openapi.GroupVersionWithContext, kind schema.GroupVersionKind) (*fnv1.Schema, error) {
	ctx, cancel := shared(ctx)
	defer cancel()
	encoded, err := document.SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	content, err := resolveKind(encoded, kind)
	if err != nil {
		return nil, err
	}
	var found *fnv1.Schema
	if content != nil {
		if found, err = asSchema(content); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schemas[kind] = publishedSchema{url: document.ServerRelativeURL(), schema: found}
	return found, nil
}

// shared returns a context for work that others may be waiting for as well: it
// doesn't end with the one who started it.
func shared(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
}

func documentPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}
