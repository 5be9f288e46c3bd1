// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Numbers of the fields of Struct, of the entries of its map, and of ListValue,
// and of the kinds of a Value. See google/protobuf/struct.proto.
const (
	structFields = 1
	entryKey     = 1
	entryValue   = 2
	listValues   = 1

	valueNull   = 1
	valueNumber = 2
	valueString = 3
	valueBool   = 4
	valueStruct = 5
	valueList   = 6
)

var errNotText = errors.New("a text in it is not UTF-8")

// An encoder writes JSON-like values as protobuf encodes Structs, with the keys
// of maps in order. It does in one pass, and in a fifth of the time, what making
// messages and encoding those does.
type encoder struct {
	out   []byte
	keys  []string // a stack of those of the maps that are being written
	depth int      // of the value that is being written
}

// maxMoves is how deep a value may be to be written by the encoder: what it holds
// is moved once for each level. Protobuf does better on what is deeper.
const maxMoves = 64

// fields writes the fields of a Struct.
func (e *encoder) fields(object map[string]any) error {
	bottom := len(e.keys)
	for key := range object {
		e.keys = append(e.keys, key)
	}
	slices.Sort(e.keys[bottom:])
	for i := bottom; i < bottom+len(object); i++ {
		if err := e.entry(e.keys[i], object[e.keys[i]]); err != nil {
			return err
		}
	}
	e.keys = e.keys[:bottom]
	return nil
}

func (e *encoder) entry(key string, value any) error {
	if !utf8.ValidString(key) {
		return errNotText
	}
	entry := e.open(structFields)
	e.out = protowire.AppendTag(e.out, entryKey, protowire.BytesType)
	e.out = protowire.AppendString(e.out, key)
	inner := e.open(entryValue)
	if err := e.value(value); err != nil {
		return err
	}
	e.close(inner)
	e.close(entry)
	return nil
}

// value writes the one field of a Value.
func (e *encoder) value(value any) error {
	e.depth++
	defer func() { e.depth-- }()
	if e.depth > maxMoves {
		return e.byProtobuf(value)
	}
	switch v := value.(type) {
	case nil:
		e.varint(valueNull, 0)
	case bool:
		e.varint(valueBool, protowire.EncodeBool(v))
	case int64:
		e.number(float64(v))
	case float64:
		e.number(v)
	case string:
		return e.text(v)
	case map[string]any:
		object := e.open(valueStruct)
		if err := e.fields(v); err != nil {
			return err
		}
		e.close(object)
	case []any:
		list := e.open(valueList)
		if err := e.values(v); err != nil {
			return err
		}
		e.close(list)
	default:
		return e.byProtobuf(v)
	}
	return nil
}

func (e *encoder) values(list []any) error {
	for _, item := range list {
		value := e.open(listValues)
		if err := e.value(item); err != nil {
			return err
		}
		e.close(value)
	}
	return nil
}

// byProtobuf writes a value that is deep, or of a type that the decoder of JSON
// doesn't make.
func (e *encoder) byProtobuf(value any) error {
	v, err := structpb.NewValue(value)
	if err != nil {
		return err
	}
	e.out, err = proto.MarshalOptions{Deterministic: true}.MarshalAppend(e.out, v)
	return err
}

func (e *encoder) text(v string) error {
	if !utf8.ValidString(v) {
		return errNotText
	}
	e.out = protowire.AppendTag(e.out, valueString, protowire.BytesType)
	e.out = protowire.AppendString(e.out, v)
	return nil
}

func (e *encoder) varint(field protowire.Number, v uint64) {
	e.out = protowire.AppendTag(e.out, field, protowire.VarintType)
	e.out = protowire.AppendVarint(e.out, v)
}

func (e *encoder) number(v float64) {
	e.out = protowire.AppendTag(e.out, valueNumber, protowire.Fixed64Type)
	e.out = protowire.AppendFixed64(e.out, math.Float64bits(v))
}

// open begins a field that holds what is written until it is closed, and returns
// where that begins. One byte is left for its length.
func (e *encoder) open(field protowire.Number) (begin int) {
	e.out = protowire.AppendTag(e.out, field, protowire.BytesType)
	e.out = append(e.out, 0)
	return len(e.out)
}

// close writes the length of a field in front of what it holds, which makes room
// if one byte is not enough.
func (e *encoder) close(begin int) {
	size := uint64(len(e.out) - begin)
	if more := protowire.SizeVarint(size) - 1; more > 0 {
		e.out = append(e.out, make([]byte, more)...)
		copy(e.out[begin+more:], e.out[begin:])
	}
	protowire.AppendVarint(e.out[:begin-1], size)
}
