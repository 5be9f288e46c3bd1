// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	verbList  = "list"
	verbWatch = "watch"
)

// Request is what a predicate sees of a request.
type Request struct {
	// Verb is the API server's: get, list, watch, create, update, patch, delete or
	// deletecollection; for what is no resource, the HTTP method in lower case.
	Verb string
	// Path, without the query.
	Path string
	// Group, Resource (a plural) and Subresource are empty for what is no resource.
	Group, Resource, Subresource string
	Namespace, Name              string
	// Continues is whether a watch starts at a version, or a list goes on where a
	// page of it ended.
	Continues bool
}

// A Predicate picks requests. Nil picks all of them.
type Predicate func(Request) bool

// Watches picks watches.
func Watches(r Request) bool { return r.Verb == verbWatch }

// Writes picks all that is neither read nor watched. A review, by which an API
// server is asked something, counts as a write.
func Writes(r Request) bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Continuing picks watches and lists that need what was at an earlier version.
func Continuing(r Request) bool { return r.Continues }

// Resource picks what is asked of a resource, and its subresources, by the plural.
func Resource(group, resource string) Predicate {
	return func(r Request) bool { return r.Group == group && r.Resource == resource }
}

// All picks what each of the predicates picks.
func All(predicates ...Predicate) Predicate {
	return func(r Request) bool {
		for _, p := range predicates {
			if !p.picks(r) {
				return false
			}
		}
		return true
	}
}

// Not picks what the predicate does not.
func Not(p Predicate) Predicate {
	return func(r Request) bool { return !p.picks(r) }
}

func (p Predicate) picks(r Request) bool { return p == nil || p(r) }

var requestInfo = &request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

func requestOf(r *http.Request) Request {
	out := Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil {
		return out // a path that no API server has
	}
	out.Verb = info.Verb
	out.Group, out.Resource, out.Subresource = info.APIGroup, info.Resource, info.Subresource
	out.Namespace, out.Name = info.Namespace, info.Name
	query := r.URL.Query()
	switch version := query.Get("resourceVersion"); out.Verb {
	case verbWatch:
		out.Continues = version != "" && version != "0"
	case verbList:
		out.Continues = query.Get("continue") != ""
	}
	return out
}
