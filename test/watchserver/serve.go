// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (s *Server) discover(w http.ResponseWriter, r *http.Request) {
	gv := groupVersion(r)
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: gv.String(),
	}
	s.mu.Lock()
	for gvk, k := range s.kinds {
		if gvk.GroupVersion() == gv {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.Resource, Kind: gvk.Kind, Namespaced: k.Namespaced, Verbs: metav1.Verbs{"get", "list", "watch"},
			})
		}
	}
	s.mu.Unlock()
	answer(w, http.StatusOK, list)
}

func groupVersion(r *http.Request) schema.GroupVersion {
	return schema.GroupVersion{Group: r.PathValue("group"), Version: r.PathValue("version")}
}

// read answers a list or watch of a kind.
func (s *Server) read(w http.ResponseWriter, r *http.Request) {
	k, refusal, ok := s.find(r)
	query := r.URL.Query()
	switch {
	case !ok:
		return
	case k == nil:
		refuse(w, notFound(groupVersion(r).WithKind(r.PathValue("resource")), ""))
	case refusal != 0:
		retryAfter := 0
		if refusal == http.StatusTooManyRequests {
			retryAfter = 1
		}
		refuse(w, apierrors.NewGenericServerResponse(refusal, r.Method,
			schema.GroupResource{Group: k.GVK.Group, Resource: k.Resource}, "", "the script says so", retryAfter, false))
	case query.Get("sendInitialEvents") != "":
		// As of API servers that stream no lists; clients then ask for one.
		refuse(w, apierrors.NewInvalid(k.GVK.GroupKind(), "", nil))
	case query.Get("watch") != "":
		s.watch(w, r, k)
	default:
		s.list(w, k)
	}
}

// find returns the kind that is asked for, once it does not hang, nil if it is not
// served, and with what it is refused. It is not ok if nobody waits any more.
func (s *Server) find(r *http.Request) (k *kind, refusal int, ok bool) {
	for {
		var hung <-chan struct{}
		if k, refusal, hung = s.look(r); hung == nil {
			return k, refusal, true
		}
		select {
		case <-hung:
		case <-r.Context().Done():
			return nil, 0, false
		case <-s.ctx.Done():
			return nil, 0, false
		}
	}
}

func (s *Server) look(r *http.Request) (k *kind, refusal int, hung <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gvk, k := range s.kinds {
		if gvk.GroupVersion() == groupVersion(r) && k.Resource == r.PathValue("resource") {
			return k, k.refusal, k.hung
		}
	}
	return nil, 0, nil
}

func (s *Server) list(w http.ResponseWriter, k *kind) {
	items := []any{}
	s.mu.Lock()
	for _, obj := range k.objects {
		items = append(items, obj.Object)
	}
	version := s.version
	s.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": k.GVK.GroupVersion().String(),
		"kind":       k.GVK.Kind + "List",
		"metadata":   map[string]any{"resourceVersion": strconv.FormatUint(version, 10)},
		"items":      items,
	})
}

// watch tells events from a version on until it is cut, or its client goes.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, k *kind) {
	version, err := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil {
		refuse(w, apierrors.NewBadRequest("a watch here starts from a resource version"))
		return
	}
	s.mu.Lock()
	ended := k.ended
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	for {
		s.mu.Lock()
		events, known := k.since(version)
		more := k.more
		s.mu.Unlock()
		if !known {
			_, _ = w.Write(encodeEvent("ERROR", statusOf(apierrors.NewResourceExpired("the version was compacted"))))
			return
		}
		for _, e := range events {
			if _, err := w.Write(e.line); err != nil {
				return
			}
			version = e.version
		}
		if flush.Flush() != nil {
			return
		}
		select {
		case <-more:
		case <-ended:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func refuse(w http.ResponseWriter, err error) {
	status := statusOf(err)
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	answer(w, int(status.Code), status)
}

func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		panic(err)
	}
	out := status.Status()
	out.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return out
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // whoever asked may be gone
}
