// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composition

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), pkgv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1.CompositionRevision{}).Build()
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
}

// numbers returns the revisions' numbers by the step that each has first.
func numbers(t *testing.T, c client.Client) map[string]int64 {
	t.Helper()
	list := &v1.CompositionRevisionList{}
	if err := c.List(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, r := range list.Items {
		got[r.Spec.Pipeline[0].Step] = r.Spec.Revision
	}
	return got
}

func TestReconcileFollowsTheContent(t *testing.T) {
	c := newClient(t, rooms())
	r := &reconciler{client: c, live: c}
	steps := []struct {
		content string
		want    map[string]int64
	}{
		{content: "walls", want: map[string]int64{"walls": 1}},
		{content: "floor", want: map[string]int64{"walls": 1, "floor": 2}},
		{content: "walls", want: map[string]int64{"walls": 3, "floor": 2}},
		{content: "walls", want: map[string]int64{"walls": 3, "floor": 2}},
	}
	for _, step := range steps {
		composition := &v1.Composition{}
		if err := c.Get(context.Background(), client.ObjectKey{Name: "rooms"}, composition); err != nil {
			t.Fatal(err)
		}
		composition.Spec.Pipeline[0].Step = step.content
		if err := c.Update(context.Background(), composition); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Reconcile(context.Background(), requestFor("rooms")); err != nil {
			t.Fatalf("Reconcile: %v", err)
		}
		if diff := cmp.Diff(step.want, numbers(t, c)); diff != "" {
			t.Errorf("content %q: revisions (-want +got):\n%s", step.content, diff)
		}
	}
}

func TestReconcileNumbersByWhatIsStored(t *testing.T) {
	first := Snapshot(rooms(), hashOf(t, rooms()), 1)
	changed := rooms(func(c *v1.Composition) { c.Spec.Pipeline[0].Step = "floor" })
	stored := newClient(t, changed, first)
	behind := newClient(t, changed)
	r := &reconciler{client: staleClient{Client: stored, reads: behind}, live: stored}

	if _, err := r.Reconcile(context.Background(), requestFor("rooms")); err != nil {
		t.Fatalf("Reconcile: %v", err)
	}
	if diff := cmp.Diff(map[string]int64{"walls": 1, "floor": 2}, numbers(t, stored)); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

// staleClient reads from a cache that is behind what is stored.
type staleClient struct {
	client.Client

	reads client.Reader
}

func (c staleClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.reads.List(ctx, list, opts...)
}

func TestValidatorWritesOnce(t *testing.T) {
	c := newClient(t, Snapshot(rooms(), hashOf(t, rooms()), 1))
	v := &validator{client: c}
	name := Snapshot(rooms(), hashOf(t, rooms()), 1).Name
	read := func() *v1.CompositionRevision {
		if _, err := v.Reconcile(context.Background(), requestFor(name)); err != nil {
			t.Fatalf("Reconcile: %v", err)
		}
		revision := &v1.CompositionRevision{}
		if err := c.Get(context.Background(), client.ObjectKey{Name: name}, revision); err != nil {
			t.Fatal(err)
		}
		return revision
	}

	first := read()
	if got := first.Status.GetCondition(commonv1.TypeValidPipeline).Reason; got != commonv1.ReasonValidPipeline {
		t.Errorf("reason: want %s, got %q", commonv1.ReasonValidPipeline, got)
	}
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("written again although nothing changed (-first +second):\n%s", diff)
	}
}
