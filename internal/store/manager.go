// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// NewInformer makes the informers of a manager's cache (cache.Options.NewInformer).
// They differ from client-go's in what they do while the API server is away or has
// too much to do: they are back soon after it is, and can be stopped meanwhile.
func NewInformer(from cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	source := cache.ToListerWatcherWithContext(from)
	r := &requests{timing: Timing{}.OrDefaults(), failed: func(error) {}, list: source.ListWithContext, watch: source.WatchWithContext}
	return cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: r.List, WatchFuncWithContext: r.Watch}, example, resync, indexers)
}
