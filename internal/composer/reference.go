// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/xr"
)

// reference writes down, on the XR, what exists or is about to: what is created
// next can be found again, however this run ends.
func (r *run) reference(ctx context.Context) error {
	for _, one := range r.resources {
		r.out.Composed = append(r.out.Composed, one.ref)
	}
	for _, o := range r.leftovers {
		r.out.Composed = append(r.out.Composed, o.ref)
	}

	refs := r.references()
	if slices.Equal(refs, r.in.XR.ResourceRefs()) {
		return nil
	}
	next := xr.New(r.in.XR.DeepCopy(), r.in.Scope == v1.ScopeLegacyCluster)
	next.SetResourceRefs(refs)
	if len(refs) == 0 {
		setNoRefs(next.Unstructured, r.in.Scope)
	}
	stored, sent, err := r.applier.Apply(ctx, XRIntent(next, r.in.Scope, r.in.Resource, r.in.XR.Unstructured))
	if err != nil {
		return fmt.Errorf("cannot write the references to composed resources: %w", err)
	}
	if sent {
		r.out.Wrote = append(r.out.Wrote, dependency.Reference{
			GVK: r.in.XR.GroupVersionKind(), Namespace: r.key.Namespace, Name: r.key.Name,
		})
	}
	r.out.XR = xr.New(stored, r.in.Scope == v1.ScopeLegacyCluster)
	return nil
}

// references returns what the XR is to refer to, sorted. A resource that was not
// admitted is not created now, so it only keeps a reference that is there.
func (r *run) references() []xr.Ref {
	had := map[identity]bool{}
	for _, ref := range r.referred() {
		had[identityOf(ref)] = true
	}
	refs := make([]xr.Ref, 0, len(r.resources)+len(r.leftovers))
	for _, one := range r.resources {
		if one.objects != nil || had[identityOf(one.ref)] {
			refs = append(refs, r.refTo(one.ref))
		}
	}
	for _, o := range r.leftovers {
		refs = append(refs, r.refTo(o.ref))
	}
	slices.SortFunc(refs, func(a, b xr.Ref) int {
		return cmp.Or(
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return refs
}

// refTo spells a reference as the XR holds it: that of a namespaced XR has no
// field for a namespace, since there is but one.
func (r *run) refTo(ref dependency.Reference) xr.Ref {
	apiVersion, kind := ref.GVK.ToAPIVersionAndKind()
	out := xr.Ref{APIVersion: apiVersion, Kind: kind, Namespace: ref.Namespace, Name: ref.Name}
	if r.in.Scope == v1.ScopeNamespaced {
		out.Namespace = ""
	}
	return out
}

// XRIntent is all that the engine wants of an XR besides its status: its label
// and finalizer, what it is composed with and what of. They are one intent, for
// what an apply leaves out it removes. All of it is taken from x; live is the XR
// as it is stored.
//
// The UID makes sure that an apply can't bring back an XR that is gone.
func XRIntent(x xr.XR, scope v1.Scope, resource schema.GroupVersionResource, live *unstructured.Unstructured) Intent {
	wanted := xr.New(bare(x), scope == v1.ScopeLegacyCluster)
	wanted.SetUID(x.GetUID())
	wanted.SetLabels(map[string]string{v1.LabelComposite: x.CompositeLabel()})
	wanted.SetFinalizers([]string{v1.FinalizerComposite})
	if name := x.CompositionRef(); name != "" {
		wanted.SetCompositionRef(name)
	}
	if name := x.CompositionRevisionRef(); name != "" {
		wanted.SetCompositionRevisionRef(name)
	}
	if refs := x.ResourceRefs(); len(refs) > 0 {
		wanted.SetResourceRefs(refs)
	} else if _, listed, _ := unstructured.NestedSlice(x.Object, refsPath(scope)...); listed {
		setNoRefs(wanted.Unstructured, scope)
	}
	return Intent{
		XR: x.GetUID(), Object: wanted.Unstructured, Resource: resource, Live: live, FieldOwner: v1.FieldOwnerComposite,
	}
}

// setNoRefs says that the XR refers to nothing. To leave the list out would only
// remove one that no user has written, too.
func setNoRefs(obj *unstructured.Unstructured, scope v1.Scope) {
	// It fails only where the field's parents are no maps, as those of an XR are.
	_ = unstructured.SetNestedSlice(obj.Object, []any{}, refsPath(scope)...)
}

func refsPath(scope v1.Scope) []string {
	if scope == v1.ScopeLegacyCluster {
		return []string{"spec", "resourceRefs"}
	}
	return []string{"spec", "crossplane", "resourceRefs"}
}

// StatusIntent is the whole status that the engine and the functions want of an
// XR; live is the XR as it is stored.
func StatusIntent(x xr.XR, status map[string]any, resource schema.GroupVersionResource, live *unstructured.Unstructured) Intent {
	wanted := bare(x)
	wanted.SetUID(x.GetUID())
	wanted.Object["status"] = status
	return Intent{
		XR: x.GetUID(), Object: wanted, Resource: resource, Live: live,
		FieldOwner: v1.FieldOwnerComposite, Subresource: "status",
	}
}

func bare(x xr.XR) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetAPIVersion(x.GetAPIVersion())
	out.SetKind(x.GetKind())
	out.SetNamespace(x.GetNamespace())
	out.SetName(x.GetName())
	return out
}
