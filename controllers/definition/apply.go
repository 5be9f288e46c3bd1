// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fieldOwner owns what we set of CRDs.
	fieldOwner client.FieldOwner = "apiextensions.crossplane.io/definition"
	// annotationHash is the hash of the CRD as it was applied last. It tells that a field has to go, which what is stored can't:
	// there it may be somebody else's.
	annotationHash = "crosswatch.io/definition-hash"
)

// apply brings the live CRD, nil if there is none, to the rendered one, and returns what is stored then. It sends nothing if
// what is stored has all that is wanted, and nothing that only an earlier apply wanted.
func (r *reconciler) apply(ctx context.Context, rendered, live *extv1.CustomResourceDefinition) (*extv1.CustomResourceDefinition, error) {
	intent, err := intentOf(rendered)
	if err != nil {
		return nil, err
	}
	options := []client.ApplyOption{fieldOwner}
	if live != nil {
		if done, err := isApplied(intent, live); done || err != nil {
			return live, err
		}
		// Only the CRD that was seen to be ours is taken by force; one that was made in the meantime is a conflict.
		intent.SetUID(live.UID)
		options = append(options, client.ForceOwnership)
	}
	if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), options...); err != nil {
		return nil, fmt.Errorf("cannot apply CRD %q: %w", rendered.Name, err)
	}
	stored := &extv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(intent.Object, stored); err != nil {
		return nil, fmt.Errorf("cannot read CRD %q as it was stored: %w", rendered.Name, err)
	}
	return stored, nil
}

// intentOf is the CRD as it is applied: only what is rendered, and the hash of that.
func intentOf(rendered *extv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rendered.Spec)
	if err != nil {
		return nil, fmt.Errorf("cannot write CRD %q: %w", rendered.Name, err)
	}
	intent := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	intent.SetGroupVersionKind(crdKind)
	intent.SetName(rendered.Name)
	intent.SetLabels(rendered.Labels)
	intent.SetOwnerReferences(rendered.OwnerReferences)
	intent.SetAnnotations(rendered.Annotations)

	content, err := json.Marshal(intent.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot write CRD %q: %w", rendered.Name, err)
	}
	sum := sha256.Sum256(content)
	intent.SetAnnotations(union(rendered.Annotations, map[string]string{annotationHash: hex.EncodeToString(sum[:8])}))
	return intent, nil
}

// isApplied reports whether the live CRD, which the XRD controls, has all that is wanted. The API server adds defaults, and
// others may add fields, such as a CA bundle: these are not compared.
func isApplied(intent *unstructured.Unstructured, live *extv1.CustomResourceDefinition) (bool, error) {
	have, err := canonical(live.Spec)
	if err != nil {
		return false, fmt.Errorf("cannot read CRD %q: %w", live.Name, err)
	}
	want, err := canonical(intent.Object["spec"])
	if err != nil {
		return false, fmt.Errorf("cannot write CRD %q: %w", live.Name, err)
	}
	return contains(live.Labels, intent.GetLabels()) &&
		contains(live.Annotations, intent.GetAnnotations()) &&
		includes(have, want), nil
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// includes reports whether all that is wanted is there. Lists are compared as a whole: those of a CRD are replaced as a whole.
func includes(have, want any) bool {
	wanted, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want)
	}
	there, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range wanted {
		if got, ok := there[key]; !ok || !includes(got, value) {
			return false
		}
	}
	return true
}

// canonical returns the spec as its JSON reads, in which equal values are equal however they were written.
func canonical(spec any) (value any, err error) {
	content, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return value, json.Unmarshal(content, &value)
}
