// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
)

// credentials returns what the step's function is given in confidence. Each
// Secret is recorded before it is read, so that its change wakes the XR.
func (r *run) credentials(ctx context.Context, step v1.PipelineStep) (map[string]*fnv1.Credentials, error) {
	out := map[string]*fnv1.Credentials{}
	for _, c := range step.Credentials {
		if c.Source != v1.CredentialsSourceSecret {
			continue
		}
		if c.SecretRef == nil {
			return nil, fmt.Errorf("credentials %q name no Secret", c.Name)
		}
		secret := types.NamespacedName{Namespace: c.SecretRef.Namespace, Name: c.SecretRef.Name}
		data, err := r.secret(ctx, secretRequirement(dependency.Credential, step.Step, c.Name, secret))
		if err != nil {
			return nil, fmt.Errorf("credentials %q: %w", c.Name, err)
		}
		if data == nil {
			return nil, fmt.Errorf("credentials %q: Secret %q does not exist", c.Name, secret)
		}
		out[c.Name] = &fnv1.Credentials{
			Source: &fnv1.Credentials_CredentialData{CredentialData: &fnv1.CredentialData{Data: data}},
		}
	}
	return out, nil
}

// connectionOf returns the connection details of an observed resource: the data
// of the Secret that it says it writes them to. There are none before it does.
func (r *run) connectionOf(ctx context.Context, o *observation) (map[string][]byte, error) {
	ref, ok, err := unstructured.NestedStringMap(o.object.Object, "spec", "writeConnectionSecretToRef")
	if err != nil || !ok || ref["name"] == "" {
		return nil, nil //nolint:nilerr // a field of that name and another shape means something else
	}
	secret := types.NamespacedName{Namespace: ref["namespace"], Name: ref["name"]}
	if secret.Namespace == "" {
		secret.Namespace = o.ref.Namespace
	}
	data, err := r.secret(ctx, secretRequirement(dependency.Connection, "", o.name, secret))
	if err != nil {
		return nil, fmt.Errorf("cannot read the connection details of resource %q: %w", o.name, err)
	}
	return data, nil
}

func secretRequirement(from dependency.Source, step, name string, secret types.NamespacedName) dependency.Requirement {
	return dependency.Requirement{
		Step: step, Name: name, From: from,
		Reference: dependency.Reference{
			GVK:       corev1.SchemeGroupVersion.WithKind("Secret"),
			Namespace: secret.Namespace,
			Name:      secret.Name,
		},
	}
}

// secret records the requirement, and returns the Secret's data: nil if there is
// no such Secret.
func (r *run) secret(ctx context.Context, q dependency.Requirement) (map[string][]byte, error) {
	r.out.Required = append(r.out.Required, q)
	secrets, err := r.in.Record.Require(ctx, r.key, q)
	if err != nil {
		return nil, err
	}
	secret := secrets.Get(q.Reference.Namespace, q.Reference.Name)
	if secret == nil {
		return nil, nil
	}
	encoded, _, err := unstructured.NestedStringMap(secret.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("cannot read Secret %q: %w", q.Reference.Name, err)
	}
	data := make(map[string][]byte, len(encoded))
	for _, key := range slices.Sorted(maps.Keys(encoded)) {
		if data[key], err = base64.StdEncoding.DecodeString(encoded[key]); err != nil {
			return nil, fmt.Errorf("cannot decode key %q of Secret %q: %w", key, q.Reference.Name, err)
		}
	}
	return data, nil
}
