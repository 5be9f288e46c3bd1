// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

const (
	secretMark = "SECRET-"
	publicMark = "PUBLIC-"
)

// A writer of messages puts marked secrets into every place that is one, and
// counts the marks that it puts elsewhere, all of which must be seen.
type writer struct {
	*rapid.T

	public int
}

func (w *writer) flip(label string) bool { return rapid.Bool().Draw(w.T, label) }

func (w *writer) seen() any {
	w.public++
	return publicMark + rapid.StringMatching(`[a-z"\\<\n]{0,4}`).Draw(w.T, "seen")
}

// hidden is a value of a Secret: as a rule text, plain or encoded.
func (w *writer) hidden() any {
	text := secretMark + rapid.StringMatching(`[a-z]{0,4}`).Draw(w.T, "hidden")
	switch rapid.IntRange(0, 3).Draw(w.T, "shape of a secret") {
	case 0:
		return base64.StdEncoding.EncodeToString([]byte(text))
	case 1:
		return map[string]any{"deeper": []any{text}}
	default:
		return text
	}
}

func (w *writer) secret() map[string]any {
	o := map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": w.seen(), "annotations": map[string]any{lastApplied: w.hidden(), "copy": w.hidden()}},
	}
	for _, field := range []string{"data", "stringData"} {
		if w.flip("has " + field) {
			o[field] = map[string]any{"a": w.hidden(), "b": w.hidden()}
		}
	}
	return o
}

func (w *writer) secretList() map[string]any {
	item := w.secret()
	delete(item, "kind")
	delete(item, "apiVersion")
	return map[string]any{"apiVersion": "v1", "kind": "SecretList", "items": []any{item}}
}

func (w *writer) any(depth int) any {
	shape := rapid.IntRange(0, 6).Draw(w.T, "shape")
	if depth == 0 {
		shape = min(shape, 2)
	}
	switch shape {
	case 0:
		return w.secret()
	case 1:
		return w.secretList()
	case 2:
		return w.seen()
	case 3, 4:
		return []any{w.any(depth - 1), w.any(depth - 1)}
	default:
		return map[string]any{"apiVersion": "v1", "kind": "List", "data": map[string]any{"x": w.seen()}, "y": w.any(depth - 1)}
	}
}

func (w *writer) object() *structpb.Struct {
	value := w.any(3)
	fields, ok := value.(map[string]any)
	if !ok {
		fields = map[string]any{"spec": value}
	}
	s, err := structpb.NewStruct(fields)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *writer) secrets() map[string][]byte {
	return map[string][]byte{"key": []byte(secretMark + "x"), "other": []byte(secretMark)}
}

func (w *writer) resource() *fnv1.Resource {
	return &fnv1.Resource{Resource: w.object(), ConnectionDetails: w.secrets()}
}

func (w *writer) resources() map[string]*fnv1.Resources {
	return map[string]*fnv1.Resources{"some": {Items: []*fnv1.Resource{w.resource(), w.resource()}}, "none": {}}
}

func (w *writer) state() *fnv1.State {
	return &fnv1.State{Composite: w.resource(), Resources: map[string]*fnv1.Resource{"a": w.resource()}}
}

func (w *writer) request() *fnv1.RunFunctionRequest {
	return &fnv1.RunFunctionRequest{
		Observed: w.state(), Desired: w.state(), Input: w.object(), Context: w.object(),
		RequiredResources: w.resources(),
		ExtraResources:    w.resources(), //nolint:staticcheck // Older functions read nothing else.
		Credentials: map[string]*fnv1.Credentials{
			"c": {Source: &fnv1.Credentials_CredentialData{CredentialData: &fnv1.CredentialData{Data: w.secrets()}}},
		},
		RequiredSchemas: map[string]*fnv1.Schema{"s": {OpenapiV3: w.object()}},
	}
}

func (w *writer) response() *fnv1.RunFunctionResponse {
	return &fnv1.RunFunctionResponse{Desired: w.state(), Context: w.object(), Output: w.object()}
}

// No secret is written, and all else is.
func TestSecretsAreNeverWrittenProperty(t *testing.T) {
	encodedMark := base64.StdEncoding.EncodeToString([]byte(secretMark))[:8]
	rapid.Check(t, func(rt *rapid.T) {
		w := &writer{T: rt}
		req, resp := w.request(), w.response()

		var out bytes.Buffer
		r := newRound(function.Inspection{Request: encode(t, req), Response: encodeResponse(t, resp), Err: errors.New("no")})
		if err := (taken{round: &r}).write(&out); err != nil {
			rt.Fatal(err)
		}
		for _, mark := range []string{secretMark, encodedMark} {
			if at := strings.Index(out.String(), mark); at >= 0 {
				rt.Fatalf("a secret is written: ...%s", out.String()[max(0, at-200):at+20])
			}
		}
		if n := strings.Count(out.String(), publicMark); n != w.public {
			rt.Fatalf("%d of %d values that are no secrets are written: %s", n, w.public, out.String())
		}
	})
}
