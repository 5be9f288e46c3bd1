// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// buildSchema does what the API server does to publish the schema of a kind that
// a CustomResourceDefinition defines.
func buildSchema(obj *unstructured.Unstructured, subject schema.GroupVersionKind) (*fnv1.Schema, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd); err != nil {
		return nil, err
	}
	if !serves(crd, subject.Version) {
		return &fnv1.Schema{}, nil
	}
	doc, err := builder.BuildOpenAPIV3(crd, subject.Version, builder.Options{IncludeSelectableFields: true})
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the OpenAPI document: %w", err)
	}
	content, err := resolveKind(encoded, subject)
	if err != nil {
		return nil, err
	}
	return asSchema(content)
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	for _, v := range crd.Spec.Versions {
		if v.Name == version {
			return v.Served
		}
	}
	return false
}
