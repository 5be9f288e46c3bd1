// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// View returns what functions see of an object: all of it but the resource
// version and the managed fields, which change by themselves. The object is not
// changed, so it may come from an informer. The view shares everything below
// metadata with it: it is for reading only.
func View(u *unstructured.Unstructured) map[string]any {
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return maps.Clone(u.Object)
	}
	seen := maps.Clone(metadata)
	delete(seen, "resourceVersion")
	delete(seen, "managedFields")

	view := maps.Clone(u.Object)
	view["metadata"] = seen
	return view
}

// hashSeed makes hashes comparable within the process, and only there.
var hashSeed = maphash.MakeSeed()

// WakeHash returns a hash of what an event on the XR is judged by: its View, but
// for the wording and the times of Synced and Ready. They say how the last run
// went; if a text that varies from run to run woke the XR, each failure would
// cause the next. That a condition changed its status or reason does wake. Equal
// content has equal hashes for as long as the process lives; the hash means
// nothing to another process.
func WakeHash(u *unstructured.Unstructured) uint64 {
	view := View(u)
	if status, ok := view["status"].(map[string]any); ok {
		if conditions, ok := status["conditions"].([]any); ok {
			status = maps.Clone(status)
			status["conditions"] = withoutWording(conditions)
			view["status"] = status
		}
	}
	var h treeHash
	h.SetSeed(hashSeed)
	h.add(view)
	return h.Sum64()
}

func withoutWording(conditions []any) []any {
	out := slices.Clone(conditions)
	for i, c := range out {
		condition, ok := c.(map[string]any)
		if !ok {
			continue
		}
		if t := condition["type"]; t == commonv1.TypeSynced || t == commonv1.TypeReady {
			out[i] = map[string]any{"type": t, "status": condition["status"], "reason": condition["reason"]}
		}
	}
	return out
}

// A treeHash hashes JSON-like values. Each value goes in with its type, and with
// its length where it has one, so that different trees give different input.
type treeHash struct {
	maphash.Hash
}

func (h *treeHash) add(v any) {
	switch v := v.(type) {
	case nil:
		h.tag('n', 0)
	case bool:
		h.tag('b', boolBits(v))
	case int64:
		h.tag('i', uint64(v))
	case float64:
		h.tag('f', math.Float64bits(v))
	case string:
		h.addString(v)
	case []any:
		h.tag('l', uint64(len(v)))
		for _, item := range v {
			h.add(item)
		}
	case map[string]any:
		h.tag('m', uint64(len(v)))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			h.addString(key)
			h.add(v[key])
		}
	default:
		// Nothing that was decoded has another type; something that was built
		// in Go might.
		h.tag('o', 0)
		h.addString(fmt.Sprintf("%T %v", v, v))
	}
}

func (h *treeHash) addString(s string) {
	h.tag('s', uint64(len(s)))
	// A maphash.Hash never fails to write.
	_, _ = h.WriteString(s)
}

func (h *treeHash) tag(kind byte, bits uint64) {
	var b [9]byte
	b[0] = kind
	binary.LittleEndian.PutUint64(b[1:], bits)
	_, _ = h.Write(b[:])
}

func boolBits(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}
