// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// decodeRequirements returns what an answer asks for, sorted, and an error if
// any of it makes no sense. The rest is returned all the same.
func decodeRequirements(step string, asked *fnv1.Requirements) ([]dependency.Requirement, error) {
	var out []dependency.Requirement
	var invalid error
	add := func(r dependency.Requirement, err error) {
		if err == nil {
			out = append(out, r)
		} else if invalid == nil {
			invalid = fmt.Errorf("requirement %q in %s: %w", r.Name, field(r), err)
		}
	}
	for _, source := range []struct {
		from      dependency.Source
		selectors map[string]*fnv1.ResourceSelector
	}{
		{dependency.Resources, asked.GetResources()},
		{dependency.ExtraResources, asked.GetExtraResources()}, //nolint:staticcheck // Older functions ask by nothing else.
	} {
		for _, name := range slices.Sorted(maps.Keys(source.selectors)) {
			ref, err := decodeSelector(source.selectors[name])
			add(dependency.Requirement{Step: step, Name: name, From: source.from, Reference: ref}, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked.GetSchemas())) {
		selector := asked.GetSchemas()[name]
		gvk, err := decodeKind(selector.GetApiVersion(), selector.GetKind())
		add(dependency.Requirement{
			Step: step, Name: name, From: dependency.Schema, Reference: likelyDefinition(gvk), Subject: gvk,
		}, err)
	}
	return out, invalid
}

func decodeSelector(selector *fnv1.ResourceSelector) (dependency.Reference, error) {
	gvk, err := decodeKind(selector.GetApiVersion(), selector.GetKind())
	if err != nil {
		return dependency.Reference{}, err
	}
	ref := dependency.Reference{GVK: gvk, Namespace: selector.GetNamespace()}
	switch match := selector.GetMatch().(type) {
	case *fnv1.ResourceSelector_MatchName:
		if match.MatchName == "" {
			return dependency.Reference{}, errors.New("match_name is empty: set it, or leave it out to match by labels or everything")
		}
		ref.Name = match.MatchName
	case *fnv1.ResourceSelector_MatchLabels:
		ref.Labels = maps.Clone(match.MatchLabels.GetLabels())
	}
	return ref, nil
}

func decodeKind(apiVersion, kind string) (schema.GroupVersionKind, error) {
	if apiVersion == "" || kind == "" {
		return schema.GroupVersionKind{}, fmt.Errorf("api_version is %q and kind is %q: the function must set both", apiVersion, kind)
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" {
		return schema.GroupVersionKind{}, fmt.Errorf("api_version %q is neither a version nor a group and a version, as in apps/v1", apiVersion)
	}
	return gv.WithKind(kind), nil
}

// The fields of a function's requirements.
const (
	fieldResources      = "resources"
	fieldExtraResources = "extra_resources"
	fieldSchemas        = "schemas"
)

// field is where in its requirements a function asks for r, or would.
func field(r dependency.Requirement) string {
	switch {
	case r.From == dependency.Schema || !r.Subject.Empty():
		return fieldSchemas
	case r.From == dependency.ExtraResources:
		return fieldExtraResources
	default:
		return fieldResources
	}
}

// A slot is the place in a request where a requirement is answered.
type slot struct {
	field, name string
}

func slotOf(r dependency.Requirement) slot {
	return slot{field: field(r), name: r.Name}
}

// sameSelector tells whether two requirements for one slot ask for the same. Of
// a schema only the kind counts: where it is defined is for us to find out.
func sameSelector(a, b dependency.Requirement) bool {
	if field(a) == fieldSchemas {
		return a.Subject == b.Subject
	}
	return a.Reference.GVK == b.Reference.GVK &&
		a.Reference.Namespace == b.Reference.Namespace &&
		a.Reference.Name == b.Reference.Name &&
		maps.Equal(a.Reference.Labels, b.Reference.Labels)
}

// describeSelector says what is asked for, and in which slot.
func describeSelector(r dependency.Requirement) string {
	if field(r) == fieldSchemas {
		return fmt.Sprintf("%s %q (%s %s)", fieldSchemas, r.Name, r.Subject.GroupVersion(), r.Subject.Kind)
	}
	return fmt.Sprintf("%s %q (%s)", field(r), r.Name, r.Reference)
}

func compareRequirements(a, b dependency.Requirement) int {
	return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(a.Name, b.Name), strings.Compare(a.Reference.String(), b.Reference.String()))
}

// withShown adds to the requirements what earlier rounds showed of objects that
// none of them refers to.
func withShown(requirements, shown []dependency.Requirement) []dependency.Requirement {
	known := map[string]bool{}
	for _, r := range requirements {
		known[r.Reference.String()] = true
	}
	for _, r := range shown {
		if !known[r.Reference.String()] {
			r.From = dependency.Shown
			requirements = merge(requirements, []dependency.Requirement{r})
		}
	}
	return requirements
}

// merge two lists of requirements into a sorted one without repetitions.
func merge(a, b []dependency.Requirement) []dependency.Requirement {
	out := slices.Concat(a, b)
	slices.SortFunc(out, compareRequirements)
	return slices.CompactFunc(out, func(a, b dependency.Requirement) bool {
		return a.From == b.From && a.Name == b.Name && a.Subject == b.Subject && a.Reference.String() == b.Reference.String()
	})
}
