// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// Selector says which objects to require. With neither Name nor Labels it is
// every object of the kind.
type Selector struct {
	APIVersion, Kind string
	// Namespace of the objects. Empty: for labels every namespace, for a name
	// that the object has none.
	Namespace string
	Name      string
	Labels    map[string]string
}

// Require asks for objects under a name.
func Require(rsp *fnv1.RunFunctionResponse, name string, s Selector) {
	r := requirements(rsp)
	if r.Resources == nil {
		r.Resources = map[string]*fnv1.ResourceSelector{}
	}
	r.Resources[name] = s.proto()
}

// RequireExtra asks for objects in the way of older functions.
func RequireExtra(rsp *fnv1.RunFunctionResponse, name string, s Selector) {
	r := requirements(rsp)
	if r.ExtraResources == nil { //nolint:staticcheck // Deprecated, and in use.
		r.ExtraResources = map[string]*fnv1.ResourceSelector{} //nolint:staticcheck // As above.
	}
	r.ExtraResources[name] = s.proto() //nolint:staticcheck // As above.
}

// RequireSchema asks for a kind's OpenAPI schema under a name.
func RequireSchema(rsp *fnv1.RunFunctionResponse, name, apiVersion, kind string) {
	r := requirements(rsp)
	if r.Schemas == nil {
		r.Schemas = map[string]*fnv1.SchemaSelector{}
	}
	r.Schemas[name] = &fnv1.SchemaSelector{ApiVersion: apiVersion, Kind: kind}
}

// Required returns the objects that a request carries under a name, and whether
// it carries that name at all: asked and none there is not the same as not asked.
func Required(req *fnv1.RunFunctionRequest, name string) ([]map[string]any, bool) {
	found, asked := req.GetRequiredResources()[name]
	return objects(found), asked
}

// RequiredExtra is Required for what RequireExtra asked for.
func RequiredExtra(req *fnv1.RunFunctionRequest, name string) ([]map[string]any, bool) {
	found, asked := req.GetExtraResources()[name] //nolint:staticcheck // Deprecated, and in use.
	return objects(found), asked
}

// RequiredSchema returns a kind's schema, nil for a kind that is unknown, and
// whether the request carries an answer at all.
func RequiredSchema(req *fnv1.RunFunctionRequest, name string) (map[string]any, bool) {
	found, asked := req.GetRequiredSchemas()[name]
	if found.GetOpenapiV3() == nil {
		return nil, asked
	}
	return found.GetOpenapiV3().AsMap(), asked
}

// Observed returns the composite resource.
func Observed(req *fnv1.RunFunctionRequest) map[string]any {
	return req.GetObserved().GetComposite().GetResource().AsMap()
}

// ObservedComposed returns a composed resource by its name in the desired state,
// and whether it exists.
func ObservedComposed(req *fnv1.RunFunctionRequest, name string) (map[string]any, bool) {
	r, exists := req.GetObserved().GetResources()[name]
	return r.GetResource().AsMap(), exists
}

func requirements(rsp *fnv1.RunFunctionResponse) *fnv1.Requirements {
	if rsp.Requirements == nil {
		rsp.Requirements = &fnv1.Requirements{}
	}
	return rsp.Requirements
}

func objects(r *fnv1.Resources) []map[string]any {
	var all []map[string]any
	for _, item := range r.GetItems() {
		all = append(all, item.GetResource().AsMap())
	}
	return all
}

func (s Selector) proto() *fnv1.ResourceSelector {
	selector := &fnv1.ResourceSelector{ApiVersion: s.APIVersion, Kind: s.Kind}
	if s.Namespace != "" {
		selector.Namespace = &s.Namespace
	}
	switch {
	case s.Name != "":
		selector.Match = &fnv1.ResourceSelector_MatchName{MatchName: s.Name}
	case len(s.Labels) > 0:
		selector.Match = &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: s.Labels}}
	}
	return selector
}
