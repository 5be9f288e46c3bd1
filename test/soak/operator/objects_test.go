// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crosswatch-io/crosswatch/test/soak"
)

// writers is how many changes are made at once, each of another object.
const writers = 6

// objects are the script's, as it left them. Several writers bring them to the API
// server; flush waits for these. What an object is there need not be what it is here:
// others change and delete it.
type objects struct {
	client dynamic.Interface
	queues []chan write
	all    sync.WaitGroup // the writers
	queued sync.WaitGroup // the writes
	done   atomic.Int64   // writes that the API server made

	mu    sync.Mutex
	there map[schema.GroupVersionKind]map[types.NamespacedName]*unstructured.Unstructured // guarded by mu
	// withdrawn are the kinds that are not served; guarded by mu.
	withdrawn map[schema.GroupVersionKind]bool
	failed    error // the first that can't be explained; guarded by mu
}

// The verbs of writes.
const (
	create = "create"
	patch  = "patch"
	remove = "delete"
)

// write is what happens to an object, which it owns.
type write struct {
	verb   string
	object *unstructured.Unstructured
}

func newObjects(ctx context.Context, client dynamic.Interface) *objects {
	o := &objects{client: client, there: map[schema.GroupVersionKind]map[types.NamespacedName]*unstructured.Unstructured{}, withdrawn: map[schema.GroupVersionKind]bool{}}
	for _, kind := range soak.AllKinds() {
		o.there[soak.GVK(kind)] = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	for range writers {
		queue := make(chan write, 64)
		o.queues = append(o.queues, queue)
		o.all.Go(func() {
			for w := range queue {
				o.settle(w, o.do(ctx, w))
				o.queued.Done()
			}
		})
	}
	return o
}

// close ends the writers when they are done.
func (o *objects) close() {
	for _, queue := range o.queues {
		close(queue)
	}
	o.all.Wait()
}

// flush waits until the API server has made all changes, and returns what went wrong.
func (o *objects) flush() error {
	o.queued.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// changes is how many the API server has made.
func (o *objects) changes() int { return int(o.done.Load()) }

// Object implements soak.Objects.
func (o *objects) Object(gvk schema.GroupVersionKind, name types.NamespacedName) *unstructured.Unstructured {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.there[gvk][name]
}

// Names implements soak.Objects.
func (o *objects) Names(gvk schema.GroupVersionKind) []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.SortedFunc(maps.Keys(o.there[gvk]), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Put implements soak.Objects.
func (o *objects) Put(obj *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	verb, err := o.note(obj)
	if verb != "" {
		o.enqueue(verb, obj)
	}
	return obj, verb != "", err
}

// note notes what an object is to be, and returns how it becomes that.
func (o *objects) note(obj *unstructured.Unstructured) (verb string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gvk, name := obj.GroupVersionKind(), nameOf(obj)
	if o.withdrawn[gvk] {
		return "", apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name.Name)
	}
	old := o.there[gvk][name]
	if old != nil && equality.Semantic.DeepEqual(old.Object["spec"], obj.Object["spec"]) && maps.Equal(old.GetLabels(), obj.GetLabels()) {
		return "", nil
	}
	o.there[gvk][name] = obj
	if old == nil {
		return create, nil
	}
	return patch, nil
}

// Delete implements soak.Objects.
func (o *objects) Delete(gvk schema.GroupVersionKind, name types.NamespacedName) bool {
	old := o.Object(gvk, name)
	if old == nil {
		return false
	}
	o.forget(old)
	o.enqueue(remove, old)
	return true
}

func (o *objects) forget(obj *unstructured.Unstructured) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.there[obj.GroupVersionKind()], nameOf(obj))
}

// enqueue gives what happens to one object to one writer, so that it happens in order.
func (o *objects) enqueue(verb string, obj *unstructured.Unstructured) {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, obj.GroupVersionKind(), nameOf(obj))
	o.queued.Add(1)
	o.queues[h.Sum32()%writers] <- write{verb, obj.DeepCopy()}
}

// reset makes a kind's objects those that there are.
func (o *objects) reset(kind string, withdrawn bool, there []*unstructured.Unstructured) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gvk := soak.GVK(kind)
	o.withdrawn[gvk] = withdrawn
	o.there[gvk] = map[types.NamespacedName]*unstructured.Unstructured{}
	for _, obj := range there {
		o.there[gvk][nameOf(obj)] = obj
	}
}

func (o *objects) do(ctx context.Context, w write) error {
	resource := o.client.Resource(resourceOf(w.object.GetKind())).Namespace(w.object.GetNamespace())
	switch w.verb {
	case create:
		_, err := resource.Create(ctx, w.object, metav1.CreateOptions{})
		return err
	case remove:
		return resource.Delete(ctx, w.object.GetName(), metav1.DeleteOptions{})
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": w.object.GetLabels()}, "spec": w.object.Object["spec"]})
	if err == nil {
		_, err = resource.Patch(ctx, w.object.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
	}
	return err
}

// settle takes note of how a write went. What is not there any more is forgotten; so
// is an XR whose predecessor is not gone yet.
func (o *objects) settle(w write, err error) {
	switch {
	case err == nil:
		o.done.Add(1)
	case apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err):
		o.forget(w.object)
	default:
		o.fail(fmt.Errorf("cannot %s %s %s: %w", w.verb, w.object.GetKind(), nameOf(w.object), err))
	}
}

func (o *objects) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = err
	}
}

func nameOf(obj *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

func resourceOf(kind string) schema.GroupVersionResource {
	return soak.GVK(kind).GroupVersion().WithResource(soak.Resource(kind))
}
