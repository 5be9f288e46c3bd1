// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// plan is what an XR asks for, its spec.
type plan struct {
	Requires []want `json:"requires,omitempty"`
	// Follow requires what the objects found name, in a second round.
	Follow bool `json:"follow,omitempty"`
	// Composes is how many objects the XR composes, each with what it saw.
	Composes int `json:"composes,omitempty"`
}

// want is a reference as a plan says it.
type want struct {
	Kind      string            `json:"kind"`
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

func (w want) reference() dependency.Reference {
	return dependency.Reference{GVK: gvkOf(w.Kind), Namespace: w.Namespace, Name: w.Name, Labels: w.Labels}
}

// blind is what an XR says that can't read what it requires.
const blind = "blind"

// evaluate is the function of every pipeline here: what an XR sees, given how to
// read. The model calls it with the objects of the server, a run with those of the
// watches.
func evaluate(p plan, read func(dependency.Reference) ([]*unstructured.Unstructured, error)) (string, error) {
	h := fnv.New64a()
	for i, w := range p.Requires {
		found, err := read(w.reference())
		if err != nil {
			return "", err
		}
		look(h.Write, i, found)
		if !p.Follow {
			continue
		}
		for _, next := range followed(found) {
			more, err := read(next)
			if err != nil {
				return "", err
			}
			look(h.Write, i, more)
		}
	}
	return strconv.FormatUint(h.Sum64(), 16), nil
}

func look(write func([]byte) (int, error), i int, found []*unstructured.Unstructured) {
	for _, obj := range found {
		value, _, _ := unstructured.NestedString(obj.Object, "spec", "value")
		_, _ = write(fmt.Appendf(nil, "%d %s/%s=%s\n", i, obj.GetNamespace(), obj.GetName(), value))
	}
}

// followed returns what the objects name, each once, in a fixed order.
func followed(found []*unstructured.Unstructured) []dependency.Reference {
	var out []dependency.Reference
	for _, obj := range found {
		next, _, _ := unstructured.NestedString(obj.Object, "spec", "next")
		ref := dependency.Reference{GVK: obj.GroupVersionKind(), Namespace: obj.GetNamespace(), Name: next}
		if next != "" && !slices.ContainsFunc(out, func(r dependency.Reference) bool {
			return r.GVK == ref.GVK && r.Namespace == ref.Namespace && r.Name == ref.Name
		}) {
			out = append(out, ref)
		}
	}
	return out
}

func planOf(xr *unstructured.Unstructured) plan {
	text, _, _ := unstructured.NestedString(xr.Object, "spec", "plan")
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(fmt.Sprintf("an XR with a plan that is none: %v", err))
	}
	return p
}

func sawOf(xr *unstructured.Unstructured) string {
	saw, _, _ := unstructured.NestedString(xr.Object, "status", "saw")
	return saw
}

// composedOf returns the names of what an XR composes.
func composedOf(xr *unstructured.Unstructured, p plan) []string {
	var out []string
	for i := range p.Composes {
		out = append(out, fmt.Sprintf("%s-%s-%d", xr.GetKind(), xr.GetName(), i))
	}
	return out
}

func gvkOf(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "soak.example.org", Version: "v1", Kind: kind}
}

// selected picks, sorted by namespace and name, the objects that a reference means.
func selected(objects []*unstructured.Unstructured, ref dependency.Reference) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objects {
		if means(ref, obj) {
			out = append(out, obj)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

func means(ref dependency.Reference, obj *unstructured.Unstructured) bool {
	if ref.Name != "" {
		return obj.GetName() == ref.Name && obj.GetNamespace() == ref.Namespace
	}
	if ref.Namespace != "" && obj.GetNamespace() != ref.Namespace {
		return false
	}
	labels := obj.GetLabels()
	for k, v := range ref.Labels {
		if labels[k] != v {
			return false
		}
	}
	return true
}
