// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

const (
	benchKinds = 10_000
	benchXRs   = 100_000
)

// BenchmarkPublish measures what a status costs of an XR controller that is as large as they get, from reading the tracker's counts
// to the object that would be sent, and how large that is. The figures are printed as lines of their own:
//
//	go test -run '^$' -bench . ./controllers/watchstatus | grep ^figure
func BenchmarkPublish(b *testing.B) {
	controllers := []fakeController{{name: "rooms.example.org", kind: roomKind, tracker: benchTracker(), known: benchXRs, settled: benchXRs}}
	watches := benchWatches()
	xrds := definitionsOf(controllers)
	inService := func() []engine.WatchInfo { return watches }

	for _, bc := range []struct {
		name  string
		build func(view) v1alpha1.DependencyWatchStatusStatus
	}{
		{"dws", func(v view) v1alpha1.DependencyWatchStatusStatus { return statusOf(v.facts[0], v.byKind) }},
		{"cluster_dws", func(v view) v1alpha1.DependencyWatchStatusStatus { return clusterStatusOf(v, operator) }},
	} {
		var ms, kib float64
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			var status v1alpha1.DependencyWatchStatusStatus
			for b.Loop() {
				seen, err := look(xrds, controllers, inService, noCRD)
				if err != nil {
					b.Fatal(err)
				}
				status = bc.build(seen)
			}
			ms = b.Elapsed().Seconds() * 1000 / float64(b.N)
			kib = float64(sizeOf(b, status)) / 1024
			b.ReportMetric(ms, "ms/publish")
			b.ReportMetric(kib, "KiB/object")
		})
		fmt.Printf("figure %s_publish=%.1f ms\n", bc.name, ms)
		fmt.Printf("figure %s_object=%.1f KiB\n", bc.name, kib)
	}
}

func benchKind(i int) schema.GroupVersionKind {
	return schema.GroupVersionKind{
		Group: fmt.Sprintf("service%d.example.org", i%200), Version: "v1beta1", Kind: fmt.Sprintf("SomeManagedResource%d", i),
	}
}

// benchTracker has XRs that compose a resource of one kind and require all that match labels of another.
func benchTracker() *dependency.Tracker {
	tracker := dependency.NewTracker()
	for i := range benchXRs {
		xr := types.NamespacedName{Namespace: fmt.Sprintf("team-%d", i%100), Name: fmt.Sprintf("application-%06d", i)}
		tracker.Track(xr,
			[]dependency.Reference{{GVK: benchKind(i % benchKinds), Namespace: xr.Namespace, Name: xr.Name}},
			[]dependency.Requirement{{Step: "schedule", Name: "all", Reference: dependency.Reference{
				GVK: benchKind(i * 7 % benchKinds), Labels: map[string]string{"team": xr.Namespace},
			}}})
	}
	return tracker
}

func benchWatches() []engine.WatchInfo {
	watches := make([]engine.WatchInfo, benchKinds)
	for i := range watches {
		watches[i] = engine.WatchInfo{
			GVK: benchKind(i), State: engine.Active, Store: "Full", Objects: i, Controllers: 1,
		}
	}
	return watches
}

// sizeOf returns how many bytes the object has as JSON, which is how the API server keeps it.
func sizeOf(tb testing.TB, status v1alpha1.DependencyWatchStatusStatus) int {
	tb.Helper()
	object := v1alpha1.DependencyWatchStatus{Status: status}
	object.Name = "rooms.example.org"
	raw, err := json.Marshal(object)
	if err != nil {
		tb.Fatal(err)
	}
	return len(raw)
}
