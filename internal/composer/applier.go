// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	"github.com/crosswatch-io/crosswatch/internal/apifault"
)

// An Intent is what one field owner wants of one object: all that it wants, since
// what an intent leaves out and the owner applied earlier is removed.
type Intent struct {
	// XR on whose behalf this is applied, and with which what is remembered of
	// it is forgotten.
	XR types.UID

	// Object has apiVersion, kind, name and, unless cluster-scoped, namespace.
	// It is not changed.
	Object   *unstructured.Unstructured
	Resource schema.GroupVersionResource

	// Live is the object as last seen, nil if it isn't there. It is not changed.
	Live *unstructured.Unstructured

	FieldOwner string
	// Subresource to apply to; empty for the object itself.
	Subresource string
}

// An Applier sends forced server-side applies, but only those that make a
// difference. It is safe for concurrent use for different objects.
//
// An intent is not sent in two cases. Either the owner's entry in the managed
// fields of the live object is exactly the intent's fields and the values are
// literally the intent's: applying is then known to do nothing. Or the intent is
// that of the last apply, and the entry and the live values at its fields are
// what that apply resulted in: then a value that the API server defaulted,
// normalised or dropped is no difference, while somebody else's change, removal
// or takeover of a field is one.
//
// Only our own fields are compared, so others may set what we don't.
type Applier struct {
	client dynamic.Interface
	memory memory
}

// NewApplier returns an applier that remembers nothing yet.
func NewApplier(client dynamic.Interface) *Applier {
	return &Applier{client: client, memory: memory{byXR: map[types.UID][]record{}}}
}

// Apply brings the object to the intent. It returns the object as the API server
// returned it, and true; or Live, and false, if nothing needed to be sent.
// Errors wrap the API server's, so that callers can tell them apart, and have a
// stable text.
func (a *Applier) Apply(ctx context.Context, in Intent) (*unstructured.Unstructured, bool, error) {
	remembered := record{key: keyOf(in), intent: hashOf(in.Object)}
	last, known := a.memory.get(in.XR, remembered.key)
	if in.Live != nil && isApplied(in, last, remembered.intent, known) {
		return in.Live, false, nil
	}

	options := metav1.ApplyOptions{FieldManager: in.FieldOwner, Force: true}
	result, err := a.resource(in).Apply(ctx, in.Object.GetName(), in.Object, options, subresources(in)...)
	if err != nil {
		return nil, false, apifault.Stable(err)
	}
	remembered.owned = hashOwned(in, result)
	remembered.version = versionOf(result)
	a.memory.put(in.XR, remembered)
	return result, true, nil
}

// Forget drops what is remembered of applies on behalf of an XR.
func (a *Applier) Forget(xr types.UID) { a.memory.forget(xr) }

// forgetObject drops what is remembered of one object that is to be deleted.
func (a *Applier) forgetObject(in Intent) { a.memory.drop(in.XR, keyOf(in)) }

func (a *Applier) resource(in Intent) dynamic.ResourceInterface {
	if namespace := in.Object.GetNamespace(); namespace != "" {
		return a.client.Resource(in.Resource).Namespace(namespace)
	}
	return a.client.Resource(in.Resource)
}

func subresources(in Intent) []string {
	if in.Subresource == "" {
		return nil
	}
	return []string{in.Subresource}
}

// isApplied reports whether sending the intent would change nothing. A live
// object from before our own last apply says nothing: what became of that apply
// arrives as an event, and is judged then.
func isApplied(in Intent, last record, intent uint64, known bool) bool {
	same := known && last.intent == intent
	if known && versionOf(in.Live) < last.version {
		return same
	}
	if same && last.owned == hashOwned(in, in.Live) {
		return true
	}
	set, ok := ownEntry(in.Live, in.FieldOwner, in.Subresource)
	return ok && covers(set, withoutIdentity(in.Object.Object), in.Live.Object)
}

func keyOf(in Intent) uint64 {
	d := newDigest()
	for _, part := range []string{
		in.Resource.Group, in.Resource.Version, in.Resource.Resource, in.Object.GetNamespace(), in.Object.GetName(),
		in.FieldOwner, in.Subresource,
	} {
		d.text(part)
	}
	return d.sum()
}

func hashOf(obj *unstructured.Unstructured) uint64 {
	d := newDigest()
	d.value(obj.Object)
	return d.sum()
}

func hashOwned(in Intent, obj *unstructured.Unstructured) uint64 {
	d := newDigest()
	set, ok := ownEntry(obj, in.FieldOwner, in.Subresource)
	if !ok {
		d.tag(tagAbsent)
		return d.sum()
	}
	d.owned(set, obj.Object, in.Object.Object)
	return d.sum()
}

// withoutIdentity returns a shallow copy without what says which object it is:
// managed fields have no such fields.
func withoutIdentity(obj map[string]any) map[string]any {
	out := maps.Clone(obj)
	delete(out, "apiVersion")
	delete(out, "kind")
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, field := range []string{"name", "namespace", "uid"} {
		delete(metadata, field)
	}
	out["metadata"] = metadata
	if len(metadata) == 0 {
		delete(out, "metadata")
	}
	return out
}

// FieldOwnerOf returns the field owner under which an XR applies what it
// composes: no two XRs share one, whatever their kinds, namespaces and names.
func FieldOwnerOf(kind schema.GroupKind, xr types.NamespacedName) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{kind.Group, kind.Kind, xr.Namespace, xr.Name}, "\x00")))
	return v1.FieldOwnerComposedPrefix + hex.EncodeToString(sum[:])
}
