// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

// idleEngine has no controllers yet, as right after a start.
type idleEngine struct{ watches []engine.WatchInfo }

func (e *idleEngine) Controllers() []*engine.Controller { return nil }
func (e *idleEngine) Watches() []engine.WatchInfo       { return e.watches }

func establishedXRD(name string, uid types.UID) *v1.CompositeResourceDefinition {
	xrd := &v1.CompositeResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
	xrd.Status.SetConditions(commonv1.True(commonv1.TypeEstablished, commonv1.ReasonWatchingCompositeResource))
	return xrd
}

type publisherTest struct {
	*Publisher

	engine *idleEngine
	client client.Client
	clock  *testclock.FakeClock
}

func newPublisherTest(t *testing.T, objects ...client.Object) *publisherTest {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	test := &publisherTest{
		engine: &idleEngine{},
		client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&v1alpha1.DependencyWatchStatus{}).Build(),
		clock: testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	p, err := NewPublisher(Config{Client: test.client, Engine: test.engine, Interval: time.Second, Clock: test.clock, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	test.Publisher = p
	return test
}

// publish publishes once, a minute after the last time, and returns what there is then.
func (p *publisherTest) publish(t *testing.T) map[string]v1alpha1.DependencyWatchStatus {
	t.Helper()
	p.clock.Step(time.Minute)
	if err := p.Publish(context.Background()); err != nil {
		t.Fatalf("Publish: %v", err)
	}
	list := &v1alpha1.DependencyWatchStatusList{}
	if err := p.client.List(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	got := map[string]v1alpha1.DependencyWatchStatus{}
	for _, item := range list.Items {
		got[item.Name] = item
	}
	return got
}

func TestPublish(t *testing.T) {
	p := newPublisherTest(t,
		establishedXRD("rooms.example.org", "1"),
		&v1.CompositeResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "broken.example.org"}},
		&v1alpha1.DependencyWatchStatus{ObjectMeta: metav1.ObjectMeta{Name: "gone.example.org", UID: "2"}},
	)
	got := p.publish(t)

	var names []string
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"cluster", "rooms.example.org"}, names); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}
	rooms, cluster := got["rooms.example.org"], got["cluster"]
	if owner := metav1.GetControllerOf(&rooms); owner == nil || owner.UID != "1" {
		t.Errorf("want the XRD to own its object, got owner %v", owner)
	}
	for _, object := range []v1alpha1.DependencyWatchStatus{rooms, cluster} {
		if got := object.Status.GetCondition(commonv1.TypeConverged).Status; got != corev1.ConditionFalse {
			t.Errorf("%s: want Converged False while no controller runs, got %s", object.Name, got)
		}
		if got := object.Status.LastPublishedTime; got == nil || !got.Time.Equal(p.clock.Now()) {
			t.Errorf("%s: want it published at %s, got %v", object.Name, p.clock.Now(), got)
		}
	}
}

func TestPublishWritesOnlyChanges(t *testing.T) {
	p := newPublisherTest(t, establishedXRD("rooms.example.org", "1"))
	first := p.publish(t)
	if diff := cmp.Diff(first, p.publish(t)); diff != "" {
		t.Errorf("written again although nothing changed (-first +second):\n%s", diff)
	}

	p.engine.watches = watches
	third := p.publish(t)
	if diff := cmp.Diff(first["rooms.example.org"], third["rooms.example.org"]); diff != "" {
		t.Errorf("an object that did not change was written (-first +third):\n%s", diff)
	}
	if got := len(third["cluster"].Status.SharedWatches); got != len(watches) {
		t.Errorf("want %d shared watches, got %d", len(watches), got)
	}
	if first["cluster"].Status.LastPublishedTime.Equal(third["cluster"].Status.LastPublishedTime) {
		t.Error("the changed object has its old publication time")
	}
}

func TestPublishCorrectsHandEdits(t *testing.T) {
	p := newPublisherTest(t, establishedXRD("rooms.example.org", "1"))
	first := p.publish(t)
	edited := first["rooms.example.org"]
	edited.Status.References.Total = 99
	if err := p.client.Status().Update(context.Background(), &edited); err != nil {
		t.Fatal(err)
	}
	if got := p.publish(t)["rooms.example.org"].Status.References.Total; got != 0 {
		t.Errorf("want the hand edit corrected, got %d references", got)
	}
}
