// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A model is the specification of the Tracker: one list of everything that was
// recorded, which every question scans from end to end.
type model struct {
	xrs  []XR
	rows []row
}

// A row is one thing that one run of an XR recorded.
type row struct {
	xr   XR
	part int // succeeded, failed or current
	as   role
	req  Requirement // of a composed reference only the Reference is set
}

func (m *model) Require(xr XR, r Requirement) {
	m.add(row{xr, current, required, normal(r)})
}

func (m *model) Depend(xr XR, ref Reference) {
	m.add(row{xr, current, composed, normal(Requirement{Reference: ref})})
}

func (m *model) Track(xr XR, composes []Reference, requires []Requirement) {
	m.drop(xr, succeeded, failed, current)
	m.know(xr)
	for _, ref := range composes {
		m.add(row{xr, succeeded, composed, normal(Requirement{Reference: ref})})
	}
	for _, r := range requires {
		m.add(row{xr, succeeded, required, normal(r)})
	}
}

func (m *model) Fail(xr XR) {
	m.drop(xr, failed)
	for i, r := range m.rows {
		if r.xr == xr && r.part == current {
			m.rows[i].part = failed
		}
	}
}

func (m *model) Forget(xr XR) {
	m.drop(xr, succeeded, failed, current)
	m.xrs = slices.DeleteFunc(m.xrs, func(x XR) bool { return x == xr })
}

// succeededOf returns what the last success of the XR was tracked with.
func (m *model) succeededOf(xr XR) ([]Reference, []Requirement) {
	var composes []Reference
	var requires []Requirement
	for _, r := range m.rows {
		switch {
		case r.xr != xr || r.part != succeeded:
		case r.as == composed:
			composes = append(composes, r.req.Reference)
		default:
			requires = append(requires, r.req)
		}
	}
	return composes, requires
}

func (m *model) Requirements(xr XR, step string) []Requirement {
	if !slices.Contains(m.xrs, xr) {
		return nil
	}
	seeds := []Requirement{}
	for _, p := range []int{succeeded, failed, current} {
		for _, r := range m.rows {
			if r.xr != xr || r.part != p || r.as != required || r.req.Step != step {
				continue
			}
			if r.req.From != Resources && r.req.From != ExtraResources && r.req.From != Schema {
				continue
			}
			seeds = slices.DeleteFunc(seeds, func(s Requirement) bool {
				return s.From == r.req.From && s.Name == r.req.Name
			})
			seeds = append(seeds, r.req)
		}
	}
	slices.SortFunc(seeds, func(a, b Requirement) int {
		return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Name, b.Name))
	})
	return seeds
}

func (m *model) Dependants(gvk schema.GroupVersionKind, obj metav1.Object) []XR {
	return m.holders(func(r Reference) bool { return r.GVK == gvk && matches(r, obj) })
}

func (m *model) DependantsOfKind(gvk schema.GroupVersionKind) []XR {
	return m.holders(func(r Reference) bool { return r.GVK == gvk })
}

func (m *model) GVKs() []schema.GroupVersionKind {
	gvks := []schema.GroupVersionKind{}
	for _, r := range m.rows {
		if !slices.Contains(gvks, r.req.Reference.GVK) {
			gvks = append(gvks, r.req.Reference.GVK)
		}
	}
	slices.SortFunc(gvks, CompareGVKs)
	return gvks
}

func (m *model) Stats() Stats {
	s := Stats{XRs: len(m.xrs), Kinds: []KindStats{}}
	kinds := map[schema.GroupVersionKind]int{}
	for i, r := range m.rows {
		if slices.ContainsFunc(m.rows[:i], r.sameReference) {
			continue
		}
		kinds[r.req.Reference.GVK]++
		s.References++
		if r.as == composed {
			s.Composed++
		} else {
			s.Required++
		}
		if r.req.Reference.Name != "" {
			s.ByName++
		} else {
			s.ByLabels++
		}
	}
	for gvk, n := range kinds {
		s.Kinds = append(s.Kinds, KindStats{GVK: gvk, References: n, Dependants: len(m.DependantsOfKind(gvk))})
	}
	slices.SortFunc(s.Kinds, func(a, b KindStats) int { return CompareGVKs(a.GVK, b.GVK) })
	return s
}

func (m *model) add(r row) {
	m.know(r.xr)
	m.rows = append(m.rows, r)
}

func (m *model) know(xr XR) {
	if !slices.Contains(m.xrs, xr) {
		m.xrs = append(m.xrs, xr)
	}
}

func (m *model) drop(xr XR, parts ...int) {
	m.rows = slices.DeleteFunc(m.rows, func(r row) bool {
		return r.xr == xr && slices.Contains(parts, r.part)
	})
}

// holders returns each XR that has a reference for which is holds, sorted.
func (m *model) holders(is func(Reference) bool) []XR {
	var xrs []XR
	for _, r := range m.rows {
		if is(r.req.Reference) && !slices.Contains(xrs, r.xr) {
			xrs = append(xrs, r.xr)
		}
	}
	slices.SortFunc(xrs, compareXRs)
	return xrs
}

func (r row) sameReference(o row) bool {
	a, b := r.req.Reference, o.req.Reference
	return r.xr == o.xr && r.as == o.as && a.GVK == b.GVK &&
		a.Namespace == b.Namespace && a.Name == b.Name && maps.Equal(a.Labels, b.Labels)
}

// normal returns the requirement as the tracker shows it: labels of a reference
// by name don't count, and no labels are nil.
func normal(r Requirement) Requirement {
	if r.Reference.Name != "" || len(r.Reference.Labels) == 0 {
		r.Reference.Labels = nil
	}
	return r
}

func compareXRs(a, b XR) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func matches(r Reference, obj metav1.Object) bool {
	if r.Name != "" {
		return r.Name == obj.GetName() && r.Namespace == obj.GetNamespace()
	}
	if r.Namespace != "" && r.Namespace != obj.GetNamespace() {
		return false
	}
	for key, value := range r.Labels {
		have, ok := obj.GetLabels()[key]
		if !ok || have != value {
			return false
		}
	}
	return true
}
