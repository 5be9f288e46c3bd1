// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// maxNameLength of an XR: its name is a label's value on all that it composes.
const maxNameLength int64 = 63

const typeObject = "object"

var errNoSchema = errors.New("no schema.openAPIV3Schema is given")

// renderSchema returns the schema of an XR kind's version: of the author's schema what concerns spec and status, and the
// fields that the engine adds. Where both define a field, the engine's counts.
func renderSchema(xrd *v1.CompositeResourceDefinition, validation *v1.CompositeResourceValidation) (*extv1.JSONSchemaProps, error) {
	author, err := parseSchema(validation)
	if err != nil {
		return nil, err
	}
	scope := xrd.GetScope()
	spec, status := author.Properties["spec"], author.Properties["status"]
	return &extv1.JSONSchemaProps{
		Type:         typeObject,
		Description:  author.Description,
		XValidations: author.XValidations,
		Required:     []string{"spec"},
		Properties: map[string]extv1.JSONSchemaProps{
			"apiVersion": {Type: "string"},
			"kind":       {Type: "string"},
			"metadata":   renderMetadata(author.Properties["metadata"]),
			"spec": {
				Type:                   typeObject,
				Description:            spec.Description,
				Required:               spec.Required,
				OneOf:                  spec.OneOf,
				XValidations:           spec.XValidations,
				XPreserveUnknownFields: spec.XPreserveUnknownFields,
				Properties:             withProperties(spec.Properties, specFields(scope, xrd.Spec.DefaultCompositionUpdatePolicy)),
			},
			"status": {
				Type:         typeObject,
				Description:  status.Description,
				Required:     status.Required,
				OneOf:        status.OneOf,
				XValidations: status.XValidations,
				Properties:   withProperties(status.Properties, statusFields(scope)),
			},
		},
	}, nil
}

func parseSchema(validation *v1.CompositeResourceValidation) (*extv1.JSONSchemaProps, error) {
	if validation == nil || len(validation.OpenAPIV3Schema.Raw) == 0 {
		return nil, errNoSchema
	}
	schema := &extv1.JSONSchemaProps{}
	if err := json.Unmarshal(validation.OpenAPIV3Schema.Raw, schema); err != nil {
		return nil, fmt.Errorf("cannot read schema.openAPIV3Schema: %w", err)
	}
	if err := mustBeObject("schema.openAPIV3Schema", *schema); err != nil {
		return nil, err
	}
	for _, name := range []string{"spec", "status"} {
		if err := mustBeObject("schema.openAPIV3Schema.properties."+name, schema.Properties[name]); err != nil {
			return nil, err
		}
	}
	return schema, nil
}

func mustBeObject(path string, schema extv1.JSONSchemaProps) error {
	if schema.Type != "" && schema.Type != typeObject {
		return fmt.Errorf("%s: type must be %q, not %q", path, typeObject, schema.Type)
	}
	return nil
}

func renderMetadata(author extv1.JSONSchemaProps) extv1.JSONSchemaProps {
	length := maxNameLength
	if own := author.Properties["name"].MaxLength; own != nil {
		length = min(length, *own)
	}
	return extv1.JSONSchemaProps{
		Type:       typeObject,
		Properties: map[string]extv1.JSONSchemaProps{"name": {Type: "string", MaxLength: &length}},
	}
}

func withProperties(author, engine map[string]extv1.JSONSchemaProps) map[string]extv1.JSONSchemaProps {
	all := make(map[string]extv1.JSONSchemaProps, len(author)+len(engine))
	maps.Copy(all, author)
	maps.Copy(all, engine)
	return all
}
