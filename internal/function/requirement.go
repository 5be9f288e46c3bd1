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

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

const (
	// maxRequirements is how much one answer may ask for. Each requirement is
	// recorded, and read again for each run.
	maxRequirements = 1000

	// maxRequirementsSize is how long all of it may be, in bytes.
	maxRequirementsSize = 1 << 20

	// maxSelector is how much of a selector a text shows, in bytes.
	maxSelector = 500
)

// decodeRequirements returns what an answer asks for, sorted, and an error if
// any of it makes no sense. The rest is returned all the same, unless it is more
// than anybody may ask for: then nothing is.
func decodeRequirements(step string, asked *fnv1.Requirements) ([]dependency.Requirement, error) {
	if err := limitRequirements(asked); err != nil {
		return nil, err
	}
	var out []dependency.Requirement
	var invalid error
	add := func(r dependency.Requirement, err error) {
		if err == nil {
			err = limitNames(r)
		}
		if err == nil {
			out = append(out, r)
		} else if invalid == nil {
			invalid = fmt.Errorf("requirement %s in %s: %w", quote(r.Name), field(r), err)
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

func limitRequirements(asked *fnv1.Requirements) error {
	many := len(asked.GetResources()) + len(asked.GetExtraResources()) + len(asked.GetSchemas()) //nolint:staticcheck // Older functions ask by nothing else.
	if many > maxRequirements {
		return fmt.Errorf("it asks for more than %d things at once: the function must ask by labels, or by kind alone, for what is alike", maxRequirements)
	}
	if proto.Size(asked) > maxRequirementsSize {
		return fmt.Errorf("what it asks for takes more than %d bytes to say: the function must ask by fewer and shorter selectors", maxRequirementsSize)
	}
	return nil
}

// limitNames refuses what nothing can be called, before it is kept.
func limitNames(r dependency.Requirement) error {
	kind := r.Reference.GVK
	if field(r) == fieldSchemas {
		kind = r.Subject
	}
	for _, name := range []string{r.Name, kind.Group, kind.Version, kind.Kind, r.Reference.Namespace, r.Reference.Name} {
		if len(name) > maxName {
			return fmt.Errorf("it holds a name of more than %d bytes", maxName)
		}
	}
	return nil
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
		return schema.GroupVersionKind{}, fmt.Errorf("api_version is %s and kind is %s: the function must set both", quote(apiVersion), quote(kind))
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" {
		return schema.GroupVersionKind{}, fmt.Errorf("api_version %s is neither a version nor a group and a version, as in apps/v1", quote(apiVersion))
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
		subject := r.Subject.GroupVersion().String() + " " + r.Subject.Kind
		return fmt.Sprintf("%s %s (%s)", fieldSchemas, quote(r.Name), shorten(subject, maxSelector))
	}
	return fmt.Sprintf("%s %s (%s)", field(r), quote(r.Name), shorten(r.Reference.String(), maxSelector))
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
