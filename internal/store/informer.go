// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Handler hears what happens to the objects of a kind. Calls come one at a
// time, from a goroutine of the informer; a slow handler delays its own events
// and nobody else's.
type Handler interface {
	// OnEvent tells of a change: old is nil for a creation, current for a
	// deletion. Objects of the initial list are not told.
	OnEvent(old, current *unstructured.Unstructured)
	// OnFailure tells that a list or watch failed, which is a *RequestError, or
	// that a watch broke off. The informer tries again by itself until it is
	// stopped. Must not block.
	OnFailure(err error)
}

// Informer keeps every object of one kind. All methods may be called
// concurrently, also before the first list is complete and after Stop.
type Informer struct {
	kind   Kind
	shared cache.SharedIndexInformer
	synced <-chan struct{}
	source *source
	cancel context.CancelFunc
	done   chan struct{}
	told   *atomic.Int64 // as of Len
}

// Start lists and watches the kind until ctx ends or Stop is called. Whoever
// starts an informer must stop it, and must do so also when ctx ends, to wait
// for its goroutines. A kind that is not Watchable is listed again and again.
func Start(ctx context.Context, client dynamic.Interface, kind Kind, h Handler, t Timing) (*Informer, error) {
	from := newSource(client, kind, t, h.OnFailure)
	shared := cache.NewSharedIndexInformerWithOptions(from.listerWatcher(client), &unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{
			Indexers:          cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			ObjectDescription: kind.GVK.String(),
		})
	if err := shared.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("cannot set what to keep of %s: %w", kind.GVK, err)
	}
	onFailure := func(_ context.Context, _ *cache.Reflector, err error) { h.OnFailure(err) }
	if err := shared.SetWatchErrorHandlerWithContext(onFailure); err != nil {
		return nil, fmt.Errorf("cannot set the failure handler for %s: %w", kind.GVK, err)
	}
	told := &atomic.Int64{}
	registration, err := shared.AddEventHandlerWithOptions(adapter{h, told}, cache.HandlerOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot set the event handler for %s: %w", kind.GVK, err)
	}

	ctx, cancel := context.WithCancel(ctx)
	i := &Informer{
		kind:   kind,
		shared: shared,
		synced: registration.HasSyncedChecker().Done(),
		source: from,
		cancel: cancel,
		done:   make(chan struct{}),
		told:   told,
	}
	go func() {
		defer close(i.done)
		shared.RunWithContext(ctx)
	}()
	return i, nil
}

// Stop ends the list and watch and waits for the informer's goroutines, synced
// or not. It is idempotent. Reads go on to return what was last known.
func (i *Informer) Stop() {
	i.cancel()
	<-i.done
}

// Synced is closed once the first list is in the store and its handler has
// been passed by.
func (i *Informer) Synced() <-chan struct{} { return i.synced }

// Watching is closed once a watch is open: with what was listed in the store,
// every later change is an event. A kind may be listed that can't be watched, for
// want of a permission.
func (i *Informer) Watching() <-chan struct{} { return i.source.watching }

// Kind is what the API server said of the kind when the informer was started.
func (i *Informer) Kind() Kind { return i.kind }

// Mode says how much is kept of each object.
func (i *Informer) Mode() Mode { return Full }

// Version is the resource version up to which the informer has come. It changes
// at least as often as the API server sends a bookmark.
func (i *Informer) Version() string { return i.shared.LastSyncResourceVersion() }

// Len returns the number of objects that were told of and not told to be gone,
// those of the first list included. It costs nothing.
func (i *Informer) Len() int { return int(i.told.Load()) }

// Get returns the object, or nil if there is none. The namespace is empty for
// a cluster-scoped kind. The object is shared: never change it.
func (i *Informer) Get(namespace, name string) *unstructured.Unstructured {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	// The indexer's error is always nil: it serves a map.
	obj, ok, _ := i.shared.GetIndexer().GetByKey(key)
	if !ok {
		return nil
	}
	return obj.(*unstructured.Unstructured)
}

// List returns the objects that carry all the labels, of one namespace or, if
// that is empty, of all, sorted by namespace and name. The objects are shared:
// never change them.
func (i *Informer) List(namespace string, match map[string]string) []*unstructured.Unstructured {
	indexer := i.shared.GetIndexer()
	var all []any
	if namespace == "" {
		all = indexer.List()
	} else {
		// The indexer's error means that the index doesn't exist; it does.
		all, _ = indexer.ByIndex(cache.NamespaceIndex, namespace)
	}

	selector := labels.SelectorFromSet(match)
	var out []*unstructured.Unstructured
	for _, o := range all {
		obj := o.(*unstructured.Unstructured)
		if len(match) == 0 || selector.Matches(labels.Set(obj.GetLabels())) {
			out = append(out, obj)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// adapter turns client-go's callbacks into a Handler's.
type adapter struct {
	Handler

	told *atomic.Int64
}

func (a adapter) OnAdd(obj any, initial bool) {
	a.told.Add(1)
	if !initial {
		a.OnEvent(nil, obj.(*unstructured.Unstructured))
	}
}

func (a adapter) OnUpdate(old, current any) {
	before, after := old.(*unstructured.Unstructured), current.(*unstructured.Unstructured)
	// After a lost watch everything is listed again; what is the same is no event.
	// Aggregated APIs may have no versions that could tell.
	version := after.GetResourceVersion()
	if version != "" && before.GetResourceVersion() == version && before.GetUID() == after.GetUID() {
		return
	}
	a.OnEvent(before, after)
}

func (a adapter) OnDelete(obj any) {
	a.told.Add(-1)
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		// The deletion itself was missed: the last state known stands for it.
		obj = gone.Obj
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		a.OnEvent(u, nil)
	}
}
