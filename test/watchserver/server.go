// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Kind is what discovery says of a kind.
type Kind struct {
	GVK        schema.GroupVersionKind
	Resource   string // plural
	Namespaced bool
}

// Server serves kinds. Its methods may be called concurrently.
type Server struct {
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when http has ended
	// ctx ends with Close, and with it every open watch.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	version uint64                            // of the last write; guarded by mu
	kinds   map[schema.GroupVersionKind]*kind // guarded by mu
}

// Start serves no kind yet, at a port of its own, until Close.
func Start(ctx context.Context) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	s := &Server{listener: listener, served: make(chan struct{}), kinds: map[schema.GroupVersionKind]*kind{}, version: 1}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/{group}/{version}", s.discover)
	mux.HandleFunc("GET /apis/{group}/{version}/{resource}", s.read)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nothing but Close ends it
		}
	}()
	return s, nil
}

// Close ends every request and waits until nothing is served any more.
func (s *Server) Close() error {
	s.cancel()
	err := s.http.Shutdown(context.Background())
	<-s.served
	return err
}

// Config reaches the server, without any limit of its own.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://" + s.listener.Addr().String(), QPS: -1}
}

// Serve adds a kind without objects. If it is served, that changes nothing.
func (s *Server) Serve(k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[k.GVK] == nil {
		s.kinds[k.GVK] = newKind(k, s.version)
	}
}

// Withdraw removes a kind with its objects; those who watch it learn that it is
// not found.
func (s *Server) Withdraw(gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[gvk]; k != nil {
		k.hang(false)
		k.cut()
		delete(s.kinds, gvk)
	}
}

// Refuse answers lists and watches of the kind with an HTTP status from now on,
// or no more if that is 0. Like a real one, the server asks no watch that is open
// whether it still may: see Cut.
func (s *Server) Refuse(gvk schema.GroupVersionKind, status int) {
	s.change(gvk, func(k *kind) { k.refusal = status })
}

// Hang makes lists and watches of the kind wait for their answer until hang is
// called with false.
func (s *Server) Hang(gvk schema.GroupVersionKind, hang bool) {
	s.change(gvk, func(k *kind) { k.hang(hang) })
}

// Cut ends the open watches of the kind, as when the connection breaks.
func (s *Server) Cut(gvk schema.GroupVersionKind) { s.change(gvk, (*kind).cut) }

// Compact forgets the events of the kind: who comes from an earlier version than
// the present must list.
func (s *Server) Compact(gvk schema.GroupVersionKind) {
	s.change(gvk, func(k *kind) { k.compact(s.version) })
}

func (s *Server) change(gvk schema.GroupVersionKind, what func(*kind)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[gvk]; k != nil {
		what(k)
	}
}

// Put creates the object or replaces it, and returns it as it is stored now,
// shared and never to be changed; obj is the server's from now on. The UID tells a
// replacement from a new object: one that has a UID is not created. The error is a
// NotFound or, if obj has another UID or resource version than what is stored, a
// Conflict.
func (s *Server) Put(obj *unstructured.Unstructured) (stored *unstructured.Unstructured, changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[obj.GroupVersionKind()]
	if k == nil {
		return nil, false, notFound(obj.GroupVersionKind(), obj.GetName())
	}
	old := k.objects[nameOf(obj)]
	if old == nil {
		if obj.GetUID() != "" {
			return nil, false, notFound(k.GVK, obj.GetName())
		}
		version := s.next()
		obj.SetUID(types.UID("uid-" + version))
		obj.SetResourceVersion(version)
		k.store(added, obj, s.version)
		return obj, true, nil
	}
	if conflicts(obj.GetUID(), old.GetUID()) || conflicts(obj.GetResourceVersion(), old.GetResourceVersion()) {
		return nil, false, apierrors.NewConflict(schema.GroupResource{Group: k.GVK.Group, Resource: k.Resource}, obj.GetName(),
			errors.New("it is another by now"))
	}
	obj.SetUID(old.GetUID())
	obj.SetResourceVersion(old.GetResourceVersion())
	if reflect.DeepEqual(obj.Object, old.Object) {
		return old, false, nil
	}
	obj.SetResourceVersion(s.next())
	k.store(modified, obj, s.version)
	return obj, true, nil
}

// next counts a write. s.mu must be held.
func (s *Server) next() string {
	s.version++
	return strconv.FormatUint(s.version, 10)
}

// conflicts says that a writer asked for something else than there is.
func conflicts[T ~string](asked, have T) bool { return asked != "" && asked != have }

// Delete deletes the object, and says whether there was one.
func (s *Server) Delete(gvk schema.GroupVersionKind, name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[gvk]
	if k == nil || k.objects[name] == nil {
		return false
	}
	last := k.objects[name].DeepCopy()
	last.SetResourceVersion(s.next())
	k.remove(name, last, s.version)
	return true
}

// Object returns an object, shared, or nil.
func (s *Server) Object(gvk schema.GroupVersionKind, name types.NamespacedName) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[gvk]; k != nil {
		return k.objects[name]
	}
	return nil
}

// Objects returns the objects of the kind, each shared, in no order.
func (s *Server) Objects(gvk schema.GroupVersionKind) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[gvk]; k != nil {
		return slices.Collect(maps.Values(k.objects))
	}
	return nil
}

// Names returns the names of the kind's objects, sorted.
func (s *Server) Names(gvk schema.GroupVersionKind) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []types.NamespacedName
	if k := s.kinds[gvk]; k != nil {
		out = slices.Collect(maps.Keys(k.objects))
	}
	slices.SortFunc(out, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func nameOf(obj *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

func notFound(gvk schema.GroupVersionKind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name)
}
