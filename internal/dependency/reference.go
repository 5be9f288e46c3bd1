// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// An XR is the key of a composite resource. Its kind is that of the controller
// that owns the Tracker. The namespace of a cluster-scoped XR is empty.
type XR = types.NamespacedName

// A Reference says which objects an XR depends on. The package comment defines
// what it matches.
type Reference struct {
	GVK schema.GroupVersionKind

	Namespace, Name string

	// Labels count only where Name is empty. Nil and empty are the same.
	Labels map[string]string
}

// String describes the reference for errors and logs. It is the same for equal
// references.
func (r Reference) String() string {
	kind := r.GVK.GroupVersion().String() + " " + r.GVK.Kind
	switch {
	case r.Name != "" && r.Namespace != "":
		return fmt.Sprintf("%s %q", kind, r.Namespace+"/"+r.Name)
	case r.Name != "":
		return fmt.Sprintf("%s %q", kind, r.Name)
	}

	which := "all of " + kind
	if len(r.Labels) > 0 {
		which = kind + " with labels " + canonical(r.Labels)
	}
	if r.Namespace != "" {
		which += fmt.Sprintf(" in namespace %q", r.Namespace)
	}
	return which
}

// canonical spells labels so that equal maps give equal strings and different
// maps give different ones, whatever characters a function put into them.
func canonical(labels map[string]string) string {
	var b []byte
	for i, key := range slices.Sorted(maps.Keys(labels)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, key)
		b = append(b, '=')
		b = strconv.AppendQuote(b, labels[key])
	}
	return string(b)
}

// A Source says by which way a function asked for something, so that it is
// answered, and seeded, the same way.
type Source uint8

// The sources, in the order in which Tracker.Requirements returns them.
const (
	// Resources is the field of that name in a function's requirements.
	Resources Source = iota
	// ExtraResources is the older field that Resources supersedes.
	ExtraResources
	// Schema asks for the schema of a kind, and refers to the kind's
	// CustomResourceDefinition.
	Schema
	// Bootstrap is declared by the Composition, and known before any function
	// runs.
	Bootstrap
	// Credential is a Secret that the Composition passes to a function.
	Credential
	// Connection is a Secret whose data is shown to functions as the connection
	// details of an observed resource.
	Connection
	// Shown is what a function asked for and was shown in a round of the run,
	// and no longer asked for in the last. Its answer may rest on it all the
	// same; but to be shown it unasked would be news to the function.
	Shown
)

// Seeded reports whether what was asked for in this way is put into the next
// run's first request. The Composition names bootstrap requirements itself, and
// Secrets reach functions by fields of their own.
func (s Source) Seeded() bool {
	return s <= Schema
}

// String names the source.
func (s Source) String() string {
	names := [...]string{"Resources", "ExtraResources", "Schema", "Bootstrap", "Credential", "Connection", "Shown"}
	if int(s) < len(names) {
		return names[s]
	}
	return "Source(" + strconv.Itoa(int(s)) + ")"
}

// A Requirement is a Reference, and who asked for it how: the pipeline step, and
// the name under which the step wants the answer.
type Requirement struct {
	Step, Name string
	From       Source
	Reference  Reference

	// Subject of a Schema requirement is the kind whose schema was asked for.
	// It is empty for every other source.
	Subject schema.GroupVersionKind
}
