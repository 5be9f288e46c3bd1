// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"cmp"
	"slices"
	"strings"
)

// A Ref is an XR's reference to a resource that it composes. The namespace is
// empty for cluster-scoped resources, and for all that a namespaced XR composes,
// whose schema has no such field: they are in the XR's own namespace.
type Ref struct {
	APIVersion, Kind, Namespace, Name string
}

// ResourceRefs returns the XR's references to what it composes, in their order.
func (x XR) ResourceRefs() []Ref {
	items := list(x.Object, x.machinery("resourceRefs")...)
	if len(items) == 0 {
		return nil
	}
	refs := make([]Ref, 0, len(items))
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		refs = append(refs, Ref{
			APIVersion: text(fields, "apiVersion"),
			Kind:       text(fields, "kind"),
			Namespace:  text(fields, "namespace"),
			Name:       text(fields, "name"),
		})
	}
	return refs
}

// SetResourceRefs replaces the XR's references to what it composes. They are
// stored sorted, so that the order in which they were found makes no difference.
// The argument stays as it is.
func (x XR) SetResourceRefs(refs []Ref) {
	if len(refs) == 0 {
		x.set(nil, x.machinery("resourceRefs")...)
		return
	}
	items := make([]any, 0, len(refs))
	for _, ref := range slices.SortedFunc(slices.Values(refs), compareRefs) {
		items = append(items, ref.fields())
	}
	x.set(items, x.machinery("resourceRefs")...)
}

func (r Ref) fields() map[string]any {
	fields := map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind}
	if r.Namespace != "" {
		fields["namespace"] = r.Namespace
	}
	if r.Name != "" {
		fields["name"] = r.Name
	}
	return fields
}

func compareRefs(a, b Ref) int {
	return cmp.Or(
		strings.Compare(a.APIVersion, b.APIVersion),
		strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}
