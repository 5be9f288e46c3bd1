// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strconv"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// specFields are the fields that the engine adds to an XR's spec: one object, or in LegacyCluster XRs its fields themselves.
func specFields(scope v1.Scope, policy *v1.UpdatePolicy) map[string]extv1.JSONSchemaProps {
	fields := map[string]extv1.JSONSchemaProps{
		"compositionRef":              object("The Composition in use.", required("name"), texts("name")),
		"compositionSelector":         selector("Selects the Composition by its labels while none is named."),
		"compositionRevisionRef":      object("The CompositionRevision in use.", required("name"), texts("name")),
		"compositionRevisionSelector": selector("Selects among the Composition's revisions by their labels."),
		"compositionUpdatePolicy":     updatePolicy(policy),
		"resourceRefs":                resourceRefs(scope),
	}
	if scope != v1.ScopeLegacyCluster {
		engine := object("How the XR is composed.", nil, fields)
		return map[string]extv1.JSONSchemaProps{"crossplane": engine}
	}
	fields["claimRef"] = object("The claim that the XR was made for; claims are not offered.",
		required("apiVersion", "kind", "namespace", "name"), texts("apiVersion", "kind", "namespace", "name"))
	fields["writeConnectionSecretToRef"] = object("The Secret that connection details are written to.",
		required("name", "namespace"), texts("name", "namespace"))
	return fields
}

// statusFields are the fields that the engine adds to an XR's status.
func statusFields(scope v1.Scope) map[string]extv1.JSONSchemaProps {
	fields := map[string]extv1.JSONSchemaProps{
		"conditions": conditions(),
		"lastHandledReconcileAt": {
			Type:        "string",
			Description: "The token of the reconcile request that was handled last.",
		},
	}
	if scope == v1.ScopeLegacyCluster {
		fields["connectionDetails"] = object("When connection details were written.", nil, map[string]extv1.JSONSchemaProps{
			"lastPublishedTime": {Type: "string", Format: "date-time"},
		})
		fields["claimConditionTypes"] = extv1.JSONSchemaProps{
			Type:      "array",
			Items:     &extv1.JSONSchemaPropsOrArray{Schema: &extv1.JSONSchemaProps{Type: "string"}},
			XListType: ptr.To("set"),
		}
	}
	return fields
}

func conditions() extv1.JSONSchemaProps {
	properties := texts("type", "status", "reason", "message")
	properties["lastTransitionTime"] = extv1.JSONSchemaProps{Type: "string", Format: "date-time"}
	properties["observedGeneration"] = extv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	item := object("", required("lastTransitionTime", "reason", "status", "type"), properties)
	return extv1.JSONSchemaProps{
		Type:         "array",
		Description:  "What was last observed of the XR.",
		Items:        &extv1.JSONSchemaPropsOrArray{Schema: &item},
		XListType:    ptr.To("map"),
		XListMapKeys: []string{"type"},
	}
}

// resourceRefs names what an XR composes. A namespaced XR composes only where it is itself, so that no namespace is named.
func resourceRefs(scope v1.Scope) extv1.JSONSchemaProps {
	properties := texts("apiVersion", "kind", "name")
	if scope != v1.ScopeNamespaced {
		properties["namespace"] = extv1.JSONSchemaProps{Type: "string"}
	}
	item := object("", required("apiVersion", "kind"), properties)
	return extv1.JSONSchemaProps{
		Type:        "array",
		Description: "What the XR composes.",
		Items:       &extv1.JSONSchemaPropsOrArray{Schema: &item},
		XListType:   ptr.To("atomic"),
	}
}

func updatePolicy(policy *v1.UpdatePolicy) extv1.JSONSchemaProps {
	field := extv1.JSONSchemaProps{
		Type:        "string",
		Description: "Whether the XR follows the newest revision of its Composition.",
		Enum:        []extv1.JSON{quoted(string(v1.UpdateAutomatic)), quoted(string(v1.UpdateManual))},
	}
	value := quoted(string(ptr.Deref(policy, v1.UpdateAutomatic)))
	field.Default = &value
	return field
}

func selector(description string) extv1.JSONSchemaProps {
	return object(description, required("matchLabels"), map[string]extv1.JSONSchemaProps{
		"matchLabels": {
			Type:                 typeObject,
			AdditionalProperties: &extv1.JSONSchemaPropsOrBool{Allows: true, Schema: &extv1.JSONSchemaProps{Type: "string"}},
		},
	})
}

func object(description string, required []string, properties map[string]extv1.JSONSchemaProps) extv1.JSONSchemaProps {
	return extv1.JSONSchemaProps{Type: typeObject, Description: description, Required: required, Properties: properties}
}

func required(names ...string) []string { return names }

func texts(names ...string) map[string]extv1.JSONSchemaProps {
	properties := make(map[string]extv1.JSONSchemaProps, len(names)+1)
	for _, name := range names {
		properties[name] = extv1.JSONSchemaProps{Type: "string"}
	}
	return properties
}

func quoted(value string) extv1.JSON { return extv1.JSON{Raw: []byte(strconv.Quote(value))} }
