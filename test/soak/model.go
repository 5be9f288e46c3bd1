// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// Plan is what an XR asks for, its spec.
type Plan struct {
	Requires []Want `json:"requires,omitempty"`
	// Follow requires what the objects found name, in a second round.
	Follow bool `json:"follow,omitempty"`
	// Composes is how many objects the XR composes, each with what it saw.
	Composes int `json:"composes,omitempty"`
}

// Want is a reference as a plan says it.
type Want struct {
	Kind      string            `json:"kind"`
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// Reference is what the requirement means.
func (w Want) Reference() dependency.Reference {
	return dependency.Reference{GVK: GVK(w.Kind), Namespace: w.Namespace, Name: w.Name, Labels: w.Labels}
}

// Blind is what an XR says that can't read what it requires.
const Blind = "blind"

// See is the function of every pipeline here: what an XR sees, given how to read. The
// model calls it with the objects that there are, a run with those that it is shown.
func (p Plan) See(read func(dependency.Reference) ([]*unstructured.Unstructured, error)) (string, error) {
	h := fnv.New64a()
	for i, w := range p.Requires {
		found, err := read(w.Reference())
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

// PlanOf reads an XR's plan.
func PlanOf(xr *unstructured.Unstructured) Plan {
	text, _, _ := unstructured.NestedString(xr.Object, "spec", "plan")
	var p Plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(fmt.Sprintf("an XR with a plan that is none: %v", err))
	}
	return p
}

// SawOf is what an XR's status says that it saw.
func SawOf(xr *unstructured.Unstructured) string {
	saw, _, _ := unstructured.NestedString(xr.Object, "status", "saw")
	return saw
}

// GVK is that of a kind here.
func GVK(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "soak.example.org", Version: "v1", Kind: kind}
}

// Selected picks, sorted by namespace and name, the objects that a reference means.
func Selected(objects []*unstructured.Unstructured, ref dependency.Reference) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objects {
		if means(ref, obj) {
			out = append(out, obj)
		}
	}
	Sort(out)
	return out
}

// Sort sorts objects by namespace and name.
func Sort(objects []*unstructured.Unstructured) {
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
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

// ValueOf is the value of an object that XRs require or compose.
func ValueOf(obj *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(obj.Object, "spec", "value")
	return value
}

// Thing returns an object that XRs require or compose.
func Thing(kind, namespace, name string, labels map[string]any, value, next string) *unstructured.Unstructured {
	gvk := GVK(kind)
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	spec := map[string]any{"value": value}
	if next != "" {
		spec["next"] = next
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": metadata, "spec": spec,
	}}
}

// Model knows what each XR has to say.
type Model struct {
	// Objects are all that there are.
	Objects map[schema.GroupVersionKind][]*unstructured.Unstructured
	// Unreadable says that nobody can read a kind, and XRs that require it are blind.
	Unreadable func(kind string) bool
}

// Expected is what an XR has to say that composes the objects of these names. Each of
// those has to say it as well.
func (m Model) Expected(xr *unstructured.Unstructured, composed []string) string {
	saw, err := PlanOf(xr).See(func(ref dependency.Reference) ([]*unstructured.Unstructured, error) {
		if m.Unreadable(ref.GVK.Kind) {
			return nil, errUnreadable
		}
		return Selected(m.Objects[ref.GVK], ref), nil
	})
	if err != nil || len(composed) > 0 && m.Unreadable(ComposedKind) {
		return Blind
	}
	for _, name := range composed {
		ref := dependency.Reference{GVK: GVK(ComposedKind), Namespace: xr.GetNamespace(), Name: name}
		found := Selected(m.Objects[ref.GVK], ref)
		if len(found) == 0 || ValueOf(found[0]) != saw {
			return "what " + name + " has to say as well: " + saw
		}
	}
	return saw
}

var errUnreadable = errors.New("the kind can't be read")
