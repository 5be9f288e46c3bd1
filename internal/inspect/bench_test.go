// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// usual is a round with a request of about 20 KiB, and a response of as much.
func usual(b *testing.B) function.Inspection {
	b.Helper()
	state := &fnv1.State{Resources: map[string]*fnv1.Resource{}}
	for n := range 20 {
		data := map[string]any{}
		for key := range 15 {
			data[fmt.Sprint("key-", key)] = strings.Repeat("x", 45)
		}
		object, err := structpb.NewStruct(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": data,
			"metadata": map[string]any{"name": fmt.Sprint("settings-", n), "labels": map[string]any{"app": "a", "tier": "b"}},
		})
		if err != nil {
			b.Fatal(err)
		}
		state.Resources[fmt.Sprint("settings-", n)] = &fnv1.Resource{Resource: object}
	}
	i := roundOf(b, 1, 1)
	i.Request = encode(b, &fnv1.RunFunctionRequest{Observed: state})
	i.Response = encodeResponse(b, &fnv1.RunFunctionResponse{Desired: state})
	return i
}

// What a reconcile pays for a round.
func BenchmarkInspect(b *testing.B) {
	q, i := newQueue(), usual(b)
	b.ReportAllocs()
	for b.Loop() {
		q.put(i)
	}
}

// What the goroutine that writes pays for a round.
func BenchmarkEncode(b *testing.B) {
	r := newRound(usual(b))
	var out bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		if err := (taken{round: &r}).write(&out); err != nil {
			b.Fatal(err)
		}
	}
}
