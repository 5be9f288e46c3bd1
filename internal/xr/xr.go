// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An XR is a composite resource. Copies of an XR share the object. It is not
// safe for concurrent use while anyone sets anything.
type XR struct {
	*unstructured.Unstructured

	legacy bool
}

// New returns the object as an XR, legacy if its XRD has the scope LegacyCluster.
// The XR keeps the object, and setters change it: pass one that is yours, never
// one from an informer, whose copy (DeepCopy) will do. XR's own setters replace
// nested maps and leave the old ones as they are; those of Unstructured change
// metadata in place.
func New(u *unstructured.Unstructured, legacy bool) XR {
	return XR{Unstructured: u, legacy: legacy}
}

// machinery returns the path of a field that the engine adds to an XR's spec.
func (x XR) machinery(path ...string) []string {
	if x.legacy {
		return append([]string{"spec"}, path...)
	}
	return append([]string{"spec", "crossplane"}, path...)
}

func (x XR) set(v any, path ...string) {
	x.Object = with(x.Object, v, path...)
}

// CompositionRef returns the name of the XR's Composition, or "".
func (x XR) CompositionRef() string {
	return text(x.Object, x.machinery("compositionRef", "name")...)
}

// SetCompositionRef names the XR's Composition. An empty name removes the
// reference.
func (x XR) SetCompositionRef(name string) {
	x.setRef(name, "compositionRef")
}

// CompositionRevisionRef returns the name of the XR's CompositionRevision, or "".
func (x XR) CompositionRevisionRef() string {
	return text(x.Object, x.machinery("compositionRevisionRef", "name")...)
}

// SetCompositionRevisionRef names the XR's CompositionRevision. An empty name
// removes the reference.
func (x XR) SetCompositionRevisionRef(name string) {
	x.setRef(name, "compositionRevisionRef")
}

func (x XR) setRef(name, field string) {
	if name == "" {
		x.set(nil, x.machinery(field)...)
		return
	}
	x.set(map[string]any{"name": name}, x.machinery(field)...)
}

// CompositionSelector returns the labels that the XR's Composition must have,
// nil if the XR does not select by labels. The map is the caller's.
func (x XR) CompositionSelector() map[string]string {
	return x.selector("compositionSelector")
}

// CompositionRevisionSelector returns the labels that the XR's
// CompositionRevision must have, nil if the XR does not select by labels. The
// map is the caller's.
func (x XR) CompositionRevisionSelector() map[string]string {
	return x.selector("compositionRevisionSelector")
}

func (x XR) selector(field string) map[string]string {
	wanted, ok := value(x.Object, x.machinery(field, "matchLabels")...).(map[string]any)
	if !ok {
		return nil
	}
	labels := make(map[string]string, len(wanted))
	for key := range wanted {
		labels[key] = text(wanted, key)
	}
	return labels
}

// CompositionUpdatePolicy returns whether the XR follows new revisions,
// "Automatic" or "Manual", or "" where it does not say.
func (x XR) CompositionUpdatePolicy() string {
	return text(x.Object, x.machinery("compositionUpdatePolicy")...)
}
