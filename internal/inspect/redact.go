// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Redacted stands where there was a secret. It can't be mistaken for one: the
// values of Secrets are base64, which has no brackets.
const Redacted = "[redacted]"

// lastApplied is the annotation that kubectl apply keeps a copy of an object in,
// as text. It is left out wherever it is, since an object that wraps a Secret
// has that in its copy, too.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// picture returns the message as JSON has it, with the field names of the
// contract and without secrets. It shares nothing that can change with the
// message. What JSON can't say becomes text.
func picture(m protoreflect.Message) any {
	switch known := m.Interface().(type) {
	case *structpb.Struct:
		return object(known)
	case *durationpb.Duration:
		return strconv.FormatFloat(known.AsDuration().Seconds(), 'f', -1, 64) + "s"
	}
	fields := map[string]any{}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		fields[string(field.Name())] = pictureOfField(field, value)
		return true
	})
	return fields
}

func pictureOfField(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch {
	case field.IsMap():
		entries := make(map[string]any, value.Map().Len())
		value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			entries[key.String()] = pictureOfValue(field.MapValue(), value)
			return true
		})
		return entries
	case field.IsList():
		elements := make([]any, value.List().Len())
		for i := range elements {
			elements[i] = pictureOfValue(field, value.List().Get(i))
		}
		return elements
	default:
		return pictureOfValue(field, value)
	}
}

func pictureOfValue(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return picture(value.Message())
	case protoreflect.EnumKind:
		if known := field.Enum().Values().ByNumber(value.Enum()); known != nil {
			return string(known.Name())
		}
		return value.Enum()
	case protoreflect.BytesKind:
		return Redacted
	default:
		return value.Interface()
	}
}

// object is the picture of an object, or of a part of one. A Secret is known by
// its kind, wherever it is: alone, in a list, or in an object that wraps it.
func object(s *structpb.Struct) map[string]any {
	switch {
	case isA(s, "Secret"):
		return secret(s)
	case isA(s, "SecretList"):
		return secretList(s)
	}
	fields := make(map[string]any, len(s.GetFields()))
	for key, value := range s.GetFields() {
		if key != lastApplied {
			fields[key] = plain(value)
		}
	}
	return fields
}

func isA(s *structpb.Struct, kind string) bool {
	fields := s.GetFields()
	version := fields["apiVersion"].GetStringValue()
	return fields["kind"].GetStringValue() == kind && (version == "v1" || version == "") // a broken object's values are as secret
}

func secret(s *structpb.Struct) map[string]any {
	fields := make(map[string]any, len(s.GetFields()))
	for key, value := range s.GetFields() {
		switch key {
		case "data", "stringData":
			fields[key] = withoutValues(value)
		case "metadata":
			fields[key] = metadata(value.GetStructValue())
		default:
			fields[key] = plain(value)
		}
	}
	return fields
}

// metadata of a Secret, of which several tools keep a copy in an annotation.
func metadata(s *structpb.Struct) map[string]any {
	fields := object(s)
	if annotations, ok := s.GetFields()["annotations"]; ok {
		fields["annotations"] = withoutValues(annotations)
	}
	return fields
}

// secretList knows its items without their kind, which the items of a list need
// not have.
func secretList(s *structpb.Struct) map[string]any {
	fields := make(map[string]any, len(s.GetFields()))
	for key, value := range s.GetFields() {
		if key != "items" {
			fields[key] = plain(value)
			continue
		}
		items := make([]any, 0, len(value.GetListValue().GetValues()))
		for _, item := range value.GetListValue().GetValues() {
			items = append(items, secret(item.GetStructValue()))
		}
		fields[key] = items
	}
	return fields
}

// withoutValues keeps the keys of a Secret's data, and nothing of what isn't
// such data.
func withoutValues(data *structpb.Value) any {
	object := data.GetStructValue()
	if object == nil {
		return Redacted
	}
	keys := make(map[string]any, len(object.GetFields()))
	for key := range object.GetFields() {
		keys[key] = Redacted
	}
	return keys
}

func plain(value *structpb.Value) any {
	switch kind := value.GetKind().(type) {
	case *structpb.Value_StructValue:
		return object(kind.StructValue)
	case *structpb.Value_ListValue:
		elements := make([]any, 0, len(kind.ListValue.GetValues()))
		for _, element := range kind.ListValue.GetValues() {
			elements = append(elements, plain(element))
		}
		return elements
	case *structpb.Value_StringValue:
		return kind.StringValue
	case *structpb.Value_BoolValue:
		return kind.BoolValue
	case *structpb.Value_NumberValue:
		if math.IsNaN(kind.NumberValue) || math.IsInf(kind.NumberValue, 0) {
			return strconv.FormatFloat(kind.NumberValue, 'g', -1, 64)
		}
		return kind.NumberValue
	default:
		return nil
	}
}
