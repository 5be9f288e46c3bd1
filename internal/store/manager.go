// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// NewInformer makes the informers of a manager's cache (cache.Options.NewInformer).
// They differ from client-go's in what they do while the API server is away or has
// too much to do: they are back soon after it is, and can be stopped meanwhile.
func NewInformer(from cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	source := cache.ToListerWatcherWithContext(from)
	nobody, silence := func(error) {}, Timing{}.OrDefaults().Silence
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return keepAsking(ctx, verbList, nobody, func() (runtime.Object, error) { return source.ListWithContext(ctx, o) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return keepWatching(ctx, silence, nobody, func() (watch.Interface, error) { return source.WatchWithContext(ctx, o) })
		},
	}, example, resync, indexers)
}
