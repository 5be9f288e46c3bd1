// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/internal/engine"
)

const (
	interval = 30 * time.Second
	roomsXRD = "rooms.example.org"
)

// idleEngine has no controllers yet, as right after a start.
type idleEngine struct{ watches []engine.WatchInfo }

func (e *idleEngine) Controllers() []*engine.Controller { return nil }
func (e *idleEngine) Watches() []engine.WatchInfo       { return e.watches }

func establishedXRD(name string) *v1.CompositeResourceDefinition {
	return xrdWith(name, commonv1.True(commonv1.TypeEstablished, commonv1.ReasonWatchingCompositeResource))
}

// publisherTest is a Publisher with an API that counts and can refuse writes.
type publisherTest struct {
	*Publisher

	t      *testing.T
	engine *idleEngine
	client client.Client
	clock  *testclock.FakeClock
	// writes counts the applies of each object; one of a new object's two is not counted.
	writes map[string]int
	// refuse is the fault that the next status write of an object meets, by name.
	refuse map[string]error
	// deletes counts the attempts to delete an object.
	deletes int

	metrics *prometheus.Registry
}

func newPublisherTest(t *testing.T, objects ...client.Object) *publisherTest {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), extv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	p := &publisherTest{
		t: t, engine: &idleEngine{}, clock: testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		writes: map[string]int{}, refuse: map[string]error{}, metrics: prometheus.NewPedanticRegistry(),
	}
	p.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.DependencyWatchStatus{}).
		WithInterceptorFuncs(interceptor.Funcs{Apply: p.apply, SubResourceApply: p.applyStatus, Delete: p.delete}).Build()
	p.replace(operator)
	return p
}

// replace starts anew with a Publisher of another process.
func (p *publisherTest) replace(operator v1alpha1.OperatorInfo) {
	p.t.Helper()
	publisher, err := NewPublisher(Config{
		Client: p.client, Engine: p.engine, Operator: operator, Interval: interval, Metrics: p.metrics,
		Clock: p.clock, Log: logr.Discard(),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Publisher = publisher
}

func nameOf(obj runtime.ApplyConfiguration) string {
	object := unstructured.Unstructured{Object: obj.(runtime.Unstructured).UnstructuredContent()}
	return object.GetName()
}

func (p *publisherTest) apply(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	name := nameOf(obj)
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.DependencyWatchStatus{}); err == nil {
		p.writes[name]++
	}
	return c.Apply(ctx, obj, opts...)
}

func (p *publisherTest) applyStatus(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	name := nameOf(obj)
	p.writes[name]++
	if err := p.refuse[name]; err != nil {
		delete(p.refuse, name)
		return err
	}
	return c.SubResource(sub).Apply(ctx, obj, opts...)
}

func (p *publisherTest) delete(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
	p.deletes++
	if err := p.refuse[obj.GetName()]; err != nil {
		return err
	}
	return c.Delete(ctx, obj, opts...)
}

// publish publishes once what is due by now, and returns what there is then.
func (p *publisherTest) publish() map[string]v1alpha1.DependencyWatchStatus {
	p.t.Helper()
	if err := p.Publish(p.t.Context()); err != nil {
		p.t.Fatalf("Publish: %v", err)
	}
	return p.all()
}

// later publishes again when everything is due.
func (p *publisherTest) later() map[string]v1alpha1.DependencyWatchStatus {
	p.t.Helper()
	p.clock.Step(2 * interval)
	return p.publish()
}

func (p *publisherTest) all() map[string]v1alpha1.DependencyWatchStatus {
	p.t.Helper()
	list := &v1alpha1.DependencyWatchStatusList{}
	if err := p.client.List(p.t.Context(), list); err != nil {
		p.t.Fatal(err)
	}
	got := map[string]v1alpha1.DependencyWatchStatus{}
	for _, item := range list.Items {
		got[item.Name] = item
	}
	return got
}

func TestPublish(t *testing.T) {
	broken := xrdWith("broken.example.org", commonv1.False(commonv1.TypeEstablished, commonv1.ReasonInvalidDefinition, "there is no schema"))
	p := newPublisherTest(t,
		establishedXRD(roomsXRD), broken,
		&v1alpha1.DependencyWatchStatus{ObjectMeta: metav1.ObjectMeta{Name: "gone.example.org", UID: "2"}},
	)
	got := p.publish()

	want := []string{"broken.example.org", "cluster", roomsXRD}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}
	rooms, cluster := got[roomsXRD], got["cluster"]
	if owner := metav1.GetControllerOf(&rooms); owner == nil || owner.UID != "uid of "+roomsXRD {
		t.Errorf("want the XRD to own its object, got owner %v", owner)
	}
	if len(cluster.OwnerReferences) > 0 {
		t.Errorf("want nobody to own the object of all, got %v", cluster.OwnerReferences)
	}
	if diff := cmp.Diff(&operator, cluster.Status.Operator); diff != "" {
		t.Errorf("operator (-want +got):\n%s", diff)
	}
	for name, object := range got {
		for _, condition := range []string{commonv1.TypeConverged, commonv1.TypeWatching} {
			c := object.Status.GetCondition(condition)
			if c.Status != corev1.ConditionFalse || !c.LastTransitionTime.Time.Equal(p.clock.Now()) {
				t.Errorf("%s: want %s False since now while no controller runs, got %+v", name, condition, c)
			}
		}
		if at := object.Status.LastPublishedTime; at == nil || !at.Time.Equal(p.clock.Now()) {
			t.Errorf("%s: want it published at %s, got %v", name, p.clock.Now(), at)
		}
	}
	if got := p.all()["broken.example.org"].Status.Conditions[0].Message; !strings.Contains(got, "there is no schema") {
		t.Errorf("want what is wrong with the broken XRD, got %q", got)
	}
}

// An XRD without a CRD can't have XRs, so that nobody waits for them.
func TestWhatCannotHaveXRsHoldsNobodyUp(t *testing.T) {
	xrd := xrdWith(roomsXRD)
	p := newPublisherTest(t, xrd)
	cluster := p.publish()["cluster"]
	if c := cluster.Status.GetCondition(commonv1.TypeConverged); c.Status != corev1.ConditionTrue {
		t.Errorf("want Converged without a CRD, got %+v", c)
	}

	crd := &extv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: roomsXRD}}
	if err := p.client.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	cluster = p.later()["cluster"]
	if c := cluster.Status.GetCondition(commonv1.TypeConverged); c.Status != corev1.ConditionTrue {
		t.Errorf("want Converged with somebody else's CRD, got %+v", c)
	}

	crd.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(xrd, v1.GroupVersion.WithKind(v1.KindCompositeResourceDefinition))}
	if err := p.client.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	cluster = p.later()["cluster"]
	if c := cluster.Status.GetCondition(commonv1.TypeConverged); c.Status != corev1.ConditionFalse {
		t.Errorf("want not Converged before the XRs of the CRD are known, got %+v", c)
	}
}

func TestPublishWritesOnlyChanges(t *testing.T) {
	p := newPublisherTest(t, establishedXRD(roomsXRD))
	first := p.publish()
	if diff := cmp.Diff(first, p.later()); diff != "" {
		t.Errorf("written again although nothing changed (-first +second):\n%s", diff)
	}

	p.engine.watches = watches[:1]
	third := p.later()
	if diff := cmp.Diff(first[roomsXRD], third[roomsXRD]); diff != "" {
		t.Errorf("an object that did not change was written (-first +third):\n%s", diff)
	}
	if got := len(third["cluster"].Status.SharedWatches); got != 1 {
		t.Errorf("want a shared watch, got %d", got)
	}
	if first["cluster"].Status.LastPublishedTime.Equal(third["cluster"].Status.LastPublishedTime) {
		t.Error("the changed object has its old publication time")
	}
	if diff := cmp.Diff(first["cluster"].Status.Conditions, third["cluster"].Status.Conditions); diff != "" {
		t.Errorf("conditions that say the same changed (-first +third):\n%s", diff)
	}
	if want := map[string]int{roomsXRD: 1, "cluster": 2}; !maps.Equal(want, p.writes) {
		t.Errorf("want writes %v, got %v", want, p.writes)
	}
}

// The heartbeat of an object counts from its own last publication.
func TestHeartbeat(t *testing.T) {
	p := newPublisherTest(t, establishedXRD(roomsXRD))
	p.publish()
	p.clock.Step(3 * time.Minute)
	p.engine.watches = watches[:1]
	p.publish()

	for _, after := range []struct {
		elapsed time.Duration
		writes  map[string]int
	}{
		{Heartbeat - time.Second, map[string]int{roomsXRD: 1, "cluster": 2}},
		{Heartbeat, map[string]int{roomsXRD: 2, "cluster": 2}},
		{3*time.Minute + Heartbeat - time.Second, map[string]int{roomsXRD: 2, "cluster": 2}},
		{3*time.Minute + Heartbeat, map[string]int{roomsXRD: 2, "cluster": 3}},
	} {
		p.replace(operator) // or what was looked at a second ago would not be due
		p.clock.SetTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after.elapsed))
		p.publish()
		if !maps.Equal(after.writes, p.writes) {
			t.Errorf("after %s: want writes %v, got %v", after.elapsed, after.writes, p.writes)
		}
	}
}

// Everything changes all the time, the publisher is asked all the time, and its process is replaced again and again.
func TestNoObjectIsWrittenTwiceInAnInterval(t *testing.T) {
	const step, steps, restartAfter = interval / 25, 400, 60
	p := newPublisherTest(t, establishedXRD(roomsXRD))
	last := map[string]time.Time{}
	start := p.clock.Now()
	for i := range steps {
		p.engine.watches = []engine.WatchInfo{{GVK: roomKind, State: engine.Starting, Message: strconv.Itoa(i), Objects: i}}
		if i%restartAfter == restartAfter-1 {
			p.replace(v1alpha1.OperatorInfo{Version: "v1", Leader: strconv.Itoa(i)})
		}
		before := maps.Clone(p.writes)
		p.publish()
		for name, writes := range p.writes {
			since := p.clock.Since(last[name])
			if writes == before[name] {
				continue
			}
			if writes > before[name]+1 || since < interval {
				t.Fatalf("%s was written %d times, %s after the last", name, writes-before[name], since)
			}
			last[name] = p.clock.Now()
		}
		p.clock.Step(step)
	}
	for name, writes := range p.writes {
		most := int(p.clock.Since(start)/interval) + 1
		if least := most * 3 / 4; writes < least || writes > most {
			t.Errorf("%s was written %d times, want between %d and %d", name, writes, least, most)
		}
	}
}

// Objects that were first written together drift apart.
func TestIntervalsAreJittered(t *testing.T) {
	var xrds []client.Object
	for i := range 20 {
		xrds = append(xrds, establishedXRD(fmt.Sprintf("kind%d.example.org", i)))
	}
	p := newPublisherTest(t, xrds...)
	p.publish()
	seen := map[time.Duration]bool{}
	for name, due := range p.due {
		wait := due.Sub(p.clock.Now())
		if wait < interval || wait > interval*11/10 {
			t.Errorf("%s is due in %s, want between 1 and 1.1 times %s", name, wait, interval)
		}
		seen[wait] = true
	}
	if len(seen) < len(xrds)/2 {
		t.Errorf("%d objects are due at %d times", len(p.due), len(seen))
	}
	if pause := p.pause(); pause < interval || pause > interval*11/10 {
		t.Errorf("want a pause until the first is due, got %s", pause)
	}
	p.clock.Step(interval * 11 / 10)
	if pause := p.pause(); pause != interval/roundsPerInterval {
		t.Errorf("want the least pause when all are due, got %s", pause)
	}
}

func TestPublishCorrectsWhatIsOurs(t *testing.T) {
	foreignOwner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "somebody", UID: "else"}
	cases := map[string]struct {
		edit   func(*v1alpha1.DependencyWatchStatus)
		writes int // of the next publication
		kept   bool
	}{
		"Number":          {edit: func(d *v1alpha1.DependencyWatchStatus) { d.Status.References.Total = 99 }, writes: 1},
		"CompositeType":   {edit: func(d *v1alpha1.DependencyWatchStatus) { d.Status.CompositeType = nil }, writes: 1},
		"ConditionGone":   {edit: func(d *v1alpha1.DependencyWatchStatus) { d.Status.Conditions = d.Status.Conditions[1:] }, writes: 1},
		"ConditionEdited": {edit: func(d *v1alpha1.DependencyWatchStatus) { d.Status.Conditions[0].Message = "all is well" }, writes: 1},
		"ConditionAdded": {
			edit: func(d *v1alpha1.DependencyWatchStatus) {
				d.Status.SetConditions(commonv1.True("Pretty", "ISaySo"))
			},
			writes: 1,
		},
		"NoTime": {edit: func(d *v1alpha1.DependencyWatchStatus) { d.Status.LastPublishedTime = nil }, writes: 1},
		"TimeToCome": {edit: func(d *v1alpha1.DependencyWatchStatus) {
			d.Status.LastPublishedTime.Time = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
		}, writes: 1},
		"OwnerGone": {edit: func(d *v1alpha1.DependencyWatchStatus) { d.OwnerReferences = nil }, writes: 1},
		"OwnerEdited": {
			edit: func(d *v1alpha1.DependencyWatchStatus) { d.OwnerReferences[0].Controller = nil }, writes: 1,
		},
		"OwnerAdded": {
			edit: func(d *v1alpha1.DependencyWatchStatus) {
				d.OwnerReferences = append(d.OwnerReferences, foreignOwner)
			},
			kept: true,
		},
		"LabelAdded":      {edit: func(d *v1alpha1.DependencyWatchStatus) { d.Labels = map[string]string{"a": "b"} }, kept: true},
		"AnnotationAdded": {edit: func(d *v1alpha1.DependencyWatchStatus) { d.Annotations = map[string]string{"a": "b"} }, kept: true},
		"FinalizerAdded":  {edit: func(d *v1alpha1.DependencyWatchStatus) { d.Finalizers = []string{"example.org/a"} }, kept: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPublisherTest(t, establishedXRD(roomsXRD))
			published := p.publish()[roomsXRD]
			edited := published.DeepCopy()
			tc.edit(edited)
			status := edited.Status.DeepCopy()
			if err := p.client.Update(t.Context(), edited); err != nil {
				t.Fatal(err)
			}
			edited.Status = *status
			if err := p.client.Status().Update(t.Context(), edited); err != nil {
				t.Fatal(err)
			}

			clear(p.writes)
			got := p.later()[roomsXRD]
			want := published
			if tc.kept {
				want = *edited
			}
			if diff := cmp.Diff(content(want), content(got)); diff != "" {
				t.Errorf("after a publication (-want +got):\n%s", diff)
			}
			p.later()
			if got := p.writes[roomsXRD]; got != tc.writes {
				t.Errorf("want %d writes of two publications, got %d", tc.writes, got)
			}
		})
	}
}

// content is an object without what each write changes.
func content(d v1alpha1.DependencyWatchStatus) v1alpha1.DependencyWatchStatus {
	d.ResourceVersion, d.ManagedFields = "", nil
	d.Status.LastPublishedTime = nil
	conditions := slices.Clone(d.Status.Conditions)
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.Time{}
	}
	d.Status.Conditions = conditions
	return d
}

func TestAnObjectDeletedByHandComesBack(t *testing.T) {
	p := newPublisherTest(t, establishedXRD(roomsXRD))
	rooms := p.publish()[roomsXRD]
	if err := p.client.Delete(t.Context(), &rooms); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.publish()[roomsXRD]; ok {
		t.Error("it was made again before it was due")
	}
	again, ok := p.later()[roomsXRD]
	if !ok {
		t.Fatal("it was not made again")
	}
	if diff := cmp.Diff(content(rooms), content(again)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestTheObjectOfAnXRDThatIsGoneGoes(t *testing.T) {
	xrd := establishedXRD(roomsXRD)
	p := newPublisherTest(t, xrd)
	p.publish()
	if err := p.client.Delete(t.Context(), xrd); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(maps.Keys(p.publish())); !slices.Equal(got, []string{"cluster"}) {
		t.Errorf("want only cluster to be left, got %v", got)
	}

	// It is made again at once with the XRD: the object of the former one was another.
	if err := p.client.Create(t.Context(), establishedXRD(roomsXRD)); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.publish()[roomsXRD]; !ok {
		t.Error("the object of an XRD that was made again is missing")
	}
}

// What another leader published is taken over when it is due, counted from when that leader wrote it.
func TestANewLeaderTakesOver(t *testing.T) {
	p := newPublisherTest(t, establishedXRD(roomsXRD))
	first := p.publish()
	p.clock.Step(interval / 2)
	p.replace(v1alpha1.OperatorInfo{Version: "v2", Leader: "crosswatch-1_2"})
	if diff := cmp.Diff(first, p.publish()); diff != "" {
		t.Errorf("written half an interval after the last leader did (-before +after):\n%s", diff)
	}

	p.clock.Step(interval/2 + time.Second)
	second := p.publish()
	if got := second["cluster"].Status.Operator; got.Version != "v2" || got.Leader != "crosswatch-1_2" {
		t.Errorf("want the new leader, got %+v", got)
	}
	if diff := cmp.Diff(first[roomsXRD], second[roomsXRD]); diff != "" {
		t.Errorf("an object that did not change was written (-before +after):\n%s", diff)
	}
}

func TestADeletionThatIsRefusedIsTriedOnceAnInterval(t *testing.T) {
	gone := &v1alpha1.DependencyWatchStatus{ObjectMeta: metav1.ObjectMeta{Name: "gone.example.org", UID: "1"}}
	p := newPublisherTest(t, gone)
	p.refuse[gone.Name] = errors.New("not now")
	for range 3 {
		_ = p.Publish(t.Context()) // says why, the first time
	}
	if p.deletes != 1 {
		t.Errorf("tried %d times to delete it within an interval, want once", p.deletes)
	}
	delete(p.refuse, gone.Name)
	if _, ok := p.later()[gone.Name]; ok {
		t.Error("it was not tried again")
	}
}

// The garbage collector deletes an object before its XRD where the latter goes in the foreground.
func TestTheObjectOfAnXRDThatIsBeingDeletedIsNotMadeAgain(t *testing.T) {
	xrd := establishedXRD(roomsXRD)
	xrd.Finalizers = []string{"example.org/wait"}
	p := newPublisherTest(t, xrd)
	object := p.publish()[roomsXRD]
	if err := p.client.Delete(t.Context(), xrd); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.later()[roomsXRD]; !ok {
		t.Error("it was deleted although its XRD is still there")
	}
	if err := p.client.Delete(t.Context(), &object); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.later()[roomsXRD]; ok {
		t.Error("it was made again")
	}
}

func TestOneFaultLeavesTheOthers(t *testing.T) {
	p := newPublisherTest(t, establishedXRD(roomsXRD), establishedXRD("halls.example.org"))
	p.refuse["halls.example.org"] = errors.New("not now")
	err := p.Publish(t.Context())
	if err == nil || !strings.Contains(err.Error(), `DependencyWatchStatus "halls.example.org": not now`) {
		t.Errorf("want an error that names the object and the cause, got %v", err)
	}
	all := p.all()
	if all[roomsXRD].Status.LastPublishedTime == nil || all["cluster"].Status.LastPublishedTime == nil {
		t.Error("the fault kept others from being published")
	}
	if got := p.publish()["halls.example.org"]; got.Status.LastPublishedTime != nil {
		t.Error("it was tried again before it was due")
	}
	if !p.behind["halls.example.org"] || len(p.behind) > 1 {
		t.Errorf("want the object with the fault to be behind, got %v", p.behind)
	}
	if got := p.later()["halls.example.org"]; got.Status.LastPublishedTime == nil {
		t.Error("it was not tried again")
	}
	if len(p.behind) > 0 {
		t.Errorf("still behind: %v", p.behind)
	}
}

func TestStartPublishesUntilItIsStopped(t *testing.T) {
	p := newPublisherTest(t, establishedXRD(roomsXRD))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()

	waiting := func() {
		for !p.clock.HasWaiters() {
			select {
			case err := <-done:
				t.Fatalf("Start returned %v", err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	waiting()
	if got := len(p.all()); got != 2 {
		t.Errorf("want 2 objects at once, got %d", got)
	}
	if n, err := testutil.GatherAndCount(p.metrics, "crosswatch_publication_success_timestamp_seconds"); n != 1 || err != nil {
		t.Errorf("want one metric of the last success while it publishes, got %d, error %v", n, err)
	}
	if err := p.client.Create(ctx, establishedXRD("halls.example.org")); err != nil {
		t.Fatal(err)
	}
	p.clock.Step(2 * interval)
	waiting()
	if got := len(p.all()); got != 3 {
		t.Errorf("want 3 objects an interval later, got %d", got)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Start: %v", err)
	}
	if n, err := testutil.GatherAndCount(p.metrics); n != 0 || err != nil {
		t.Errorf("want no metrics after the end, got %d, error %v", n, err)
	}
	if !p.NeedLeaderElection() {
		t.Error("want only the leader to publish")
	}
}

func TestNewPublisherNeedsAllOfItsConfig(t *testing.T) {
	p := newPublisherTest(t)
	complete := Config{
		Client: p.client, Engine: p.engine, Operator: operator, Interval: interval, Metrics: p.metrics, Clock: p.clock, Log: logr.Discard(),
	}
	if _, err := NewPublisher(complete); err != nil {
		t.Errorf("with all: %v", err)
	}
	for missing, without := range map[string]func(*Config){
		"client":   func(c *Config) { c.Client = nil },
		"engine":   func(c *Config) { c.Engine = nil },
		"identity": func(c *Config) { c.Operator.Leader = "" },
		"version":  func(c *Config) { c.Operator.Version = "" },
		"interval": func(c *Config) { c.Interval = 0 },
		"metrics":  func(c *Config) { c.Metrics = nil },
		"clock":    func(c *Config) { c.Clock = nil },
	} {
		config := complete
		without(&config)
		if _, err := NewPublisher(config); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: got error %v", missing, err)
		}
	}
}

// An hour would pass, and more, before an object were due again that was due at a time of the clock before that was set back.
func TestAClockThatIsSetBackHoldsUpNothing(t *testing.T) {
	gone := &v1alpha1.DependencyWatchStatus{ObjectMeta: metav1.ObjectMeta{Name: "gone.example.org", UID: "1"}}
	p := newPublisherTest(t, gone)
	p.refuse[gone.Name] = errors.New("not now")
	_ = p.Publish(t.Context()) // says why
	delete(p.refuse, gone.Name)
	before := p.all()["cluster"].Status.LastPublishedTime

	p.clock.SetTime(p.clock.Now().Add(-time.Hour))
	after := p.publish()
	if !after["cluster"].Status.LastPublishedTime.Before(before) {
		t.Error("the cluster's object was not published again")
	}
	if _, ok := after[gone.Name]; ok {
		t.Error("the deletion that was refused was not tried again")
	}
}
