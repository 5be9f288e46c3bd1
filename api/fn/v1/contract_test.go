// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package fnv1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// TestMessages holds every name, number and type that functions built elsewhere rely on.
func TestMessages(t *testing.T) {
	want := map[string]string{
		"RunFunctionRequest": "meta 1 RequestMeta; observed 2 State; desired 3 State; input 4 Struct (optional); " +
			"context 5 Struct (optional); extra_resources 6 map<string,Resources> (deprecated); " +
			"credentials 7 map<string,Credentials>; required_resources 8 map<string,Resources>; " +
			"required_schemas 9 map<string,Schema>",
		"RequestMeta":    "tag 1 string; capabilities 2 repeated Capability",
		"Credentials":    "credential_data 1 CredentialData (oneof source)",
		"CredentialData": "data 1 map<string,bytes>",
		"Resources":      "items 1 repeated Resource",
		"Schema":         "openapi_v3 1 Struct (optional)",
		"RunFunctionResponse": "meta 1 ResponseMeta; desired 2 State; results 3 repeated Result; context 4 Struct (optional); " +
			"requirements 5 Requirements; conditions 6 repeated Condition; output 7 Struct (optional)",
		"ResponseMeta": "tag 1 string; ttl 2 Duration (optional)",
		"Requirements": "extra_resources 1 map<string,ResourceSelector> (deprecated); " +
			"resources 2 map<string,ResourceSelector>; schemas 3 map<string,SchemaSelector>",
		"ResourceSelector": "api_version 1 string; kind 2 string; match_name 3 string (oneof match); " +
			"match_labels 4 MatchLabels (oneof match); namespace 5 string (optional)",
		"MatchLabels":    "labels 1 map<string,string>",
		"SchemaSelector": "api_version 1 string; kind 2 string",
		"State":          "composite 1 Resource; resources 2 map<string,Resource>",
		"Resource":       "resource 1 Struct; connection_details 2 map<string,bytes>; ready 3 Ready",
		"Result":         "severity 1 Severity; message 2 string; reason 3 string (optional); target 4 Target (optional)",
		"Condition": "type 1 string; status 2 Status; reason 3 string; message 4 string (optional); " +
			"target 5 Target (optional)",
	}
	got := map[string]string{}
	messages := fnv1.File_run_function_proto.Messages()
	for i := range messages.Len() {
		got[string(messages.Get(i).Name())] = fieldsOf(messages.Get(i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestEnums(t *testing.T) {
	want := map[string]string{
		"Capability": "CAPABILITY_UNSPECIFIED 0, CAPABILITY_CAPABILITIES 1, CAPABILITY_REQUIRED_RESOURCES 2, " +
			"CAPABILITY_CREDENTIALS 3, CAPABILITY_CONDITIONS 4, CAPABILITY_REQUIRED_SCHEMAS 5",
		"Ready":    "READY_UNSPECIFIED 0, READY_TRUE 1, READY_FALSE 2",
		"Severity": "SEVERITY_UNSPECIFIED 0, SEVERITY_FATAL 1, SEVERITY_WARNING 2, SEVERITY_NORMAL 3",
		"Target":   "TARGET_UNSPECIFIED 0, TARGET_COMPOSITE 1, TARGET_COMPOSITE_AND_CLAIM 2",
		"Status": "STATUS_CONDITION_UNSPECIFIED 0, STATUS_CONDITION_UNKNOWN 1, STATUS_CONDITION_TRUE 2, " +
			"STATUS_CONDITION_FALSE 3",
	}
	got := map[string]string{}
	enums := fnv1.File_run_function_proto.Enums()
	for i := range enums.Len() {
		values := enums.Get(i).Values()
		var lines []string
		for j := range values.Len() {
			lines = append(lines, fmt.Sprintf("%s %d", values.Get(j).Name(), values.Get(j).Number()))
		}
		got[string(enums.Get(i).Name())] = strings.Join(lines, ", ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("enums (-want +got):\n%s", diff)
	}
}

func TestService(t *testing.T) {
	services := fnv1.File_run_function_proto.Services()
	if services.Len() != 1 || services.Get(0).Methods().Len() != 1 {
		t.Fatalf("%d services, want one with one method", services.Len())
	}
	method := services.Get(0).Methods().Get(0)
	const service = "apiextensions.fn.proto.v1.FunctionRunnerService"
	if got := services.Get(0).FullName(); got != service {
		t.Errorf("service %q, want %q", got, service)
	}
	if got, want := fnv1.FunctionRunnerService_RunFunction_FullMethodName, "/"+service+"/RunFunction"; got != want {
		t.Errorf("method %q, want %q", got, want)
	}
	if method.IsStreamingClient() || method.IsStreamingServer() {
		t.Errorf("method %q streams", method.Name())
	}
	if in, out := method.Input().Name(), method.Output().Name(); in != "RunFunctionRequest" || out != "RunFunctionResponse" {
		t.Errorf("method %q takes %q and returns %q", method.Name(), in, out)
	}
}

// fieldsOf lists a message's fields as: name number type (what else there is to say).
func fieldsOf(m protoreflect.MessageDescriptor) string {
	var fields []string
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		fields = append(fields, fmt.Sprintf("%s %d %s%s", f.Name(), f.Number(), typeOf(f), remark(f)))
	}
	return strings.Join(fields, "; ")
}

func typeOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return fmt.Sprintf("map<%s,%s>", typeOf(f.MapKey()), typeOf(f.MapValue()))
	case f.IsList():
		return "repeated " + elementOf(f)
	}
	return elementOf(f)
}

func elementOf(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return string(f.Message().Name())
	case protoreflect.EnumKind:
		return string(f.Enum().Name())
	default:
		return f.Kind().String()
	}
}

func remark(f protoreflect.FieldDescriptor) string {
	options, _ := f.Options().(*descriptorpb.FieldOptions)
	switch {
	case f.HasOptionalKeyword():
		return " (optional)"
	case f.ContainingOneof() != nil:
		return fmt.Sprintf(" (oneof %s)", f.ContainingOneof().Name())
	case options.GetDeprecated():
		return " (deprecated)"
	}
	return ""
}
