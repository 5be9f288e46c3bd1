// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"slices"
)

// seed of the hashes, which are compared within this process only.
var seed = maphash.MakeSeed()

// digest hashes JSON values so that equal ones, whatever Go type their numbers
// have, hash the same, and different ones differ.
type digest struct{ hash maphash.Hash }

func newDigest() *digest {
	d := &digest{}
	d.hash.SetSeed(seed)
	return d
}

func (d *digest) sum() uint64 { return d.hash.Sum64() }

// The kinds of values, written before each so that no two values share a spelling.
const (
	tagAbsent byte = iota
	tagNull
	tagBool
	tagNumber
	tagString
	tagList
	tagMap
	tagPresent
)

func (d *digest) tag(t byte)    { _ = d.hash.WriteByte(t) }
func (d *digest) size(n int)    { d.number(uint64(n)) }
func (d *digest) text(s string) { d.size(len(s)); _, _ = d.hash.WriteString(s) }

func (d *digest) number(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	_, _ = d.hash.Write(b[:])
}

func (d *digest) value(v any) {
	switch v := v.(type) {
	case nil:
		d.tag(tagNull)
	case bool:
		d.tag(tagBool)
		if v {
			d.tag(tagPresent)
		}
	case string:
		d.tag(tagString)
		d.text(v)
	case []any:
		d.tag(tagList)
		d.size(len(v))
		for _, item := range v {
			d.value(item)
		}
	case map[string]any:
		d.tag(tagMap)
		d.size(len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			d.text(key)
			d.value(v[key])
		}
	default:
		d.tag(tagNumber)
		d.number(math.Float64bits(asFloat(v)))
	}
}

// asFloat returns a number as JSON has it. The few integers beyond 2^53 that a
// float can't tell apart are no loss: functions exchange floats only.
func asFloat(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	case int:
		return float64(n)
	case int32:
		return float64(n)
	}
	return math.NaN()
}

// equivalent reports whether both values are the same JSON. An absent value,
// null, an empty map and an empty list say the same here: API servers drop them
// at will.
func equivalent(a, b any) bool {
	if isEmpty(a) && isEmpty(b) {
		return true
	}
	switch a := a.(type) {
	case map[string]any:
		return sameMap(a, b)
	case []any:
		return sameList(a, b)
	case string, bool, nil:
		return a == b
	}
	if !isNumber(b) {
		return false
	}
	return asFloat(a) == asFloat(b)
}

func sameMap(a map[string]any, v any) bool {
	b, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range a {
		if !equivalent(value, b[key]) {
			return false
		}
	}
	for key, value := range b {
		if _, ok := a[key]; !ok && !isEmpty(value) {
			return false
		}
	}
	return true
}

func sameList(a []any, v any) bool {
	b, ok := v.([]any)
	return ok && slices.EqualFunc(a, b, equivalent)
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64, int, int32:
		return true
	}
	return false
}
