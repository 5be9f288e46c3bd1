// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// fails waits until the XR's condition says that it can't be reconciled, in
// every word that its reader needs. What it says on the way there, before its
// Composition has a revision, doesn't matter.
func (w *world) fails(xr *unstructured.Unstructured, words ...string) {
	w.t.Helper()
	w.says(xr, "Synced", words...)
}

func (w *world) says(obj client.Object, condition string, words ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s=False with each of %q", condition, words), func() (bool, string) {
		c := w.conditionOf(obj, condition)
		message, _ := c["message"].(string)
		lacks := slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(message, word) })
		return c["status"] == "False" && !lacks, fmt.Sprint(c)
	})
}

// Each fault of a function shows on the XRs that use it, costs no other XR
// anything, and is over when the function is mended.
func TestAFunctionThatMisbehavesIsNamedAndRecovers(t *testing.T) {
	cases := map[string]struct {
		breaks func(*functions.Server)
		words  []string
	}{
		"cannot be reached": {
			breaks: func(s *functions.Server) { s.Stop() },
			words:  []string{"broken", "localhost"},
		},
		"answers garbage": {
			breaks: func(s *functions.Server) {
				s.Handle(func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: "someone else's"}}, nil
				})
			},
			words: []string{"broken", "tag"},
		},
		"panics": {
			breaks: func(s *functions.Server) {
				s.Handle(func(*fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
					s.Stop() // what a process that panics leaves: a broken connection and no server
					return nil, nil
				})
			},
			words: []string{"broken"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.operate(retryAfter(200 * time.Millisecond))
			broken := w.function("broken", reader)
			w.function("sound", reader)
			tc.breaks(broken)
			kind, other := w.shared(sample), w.shared(bystander)
			w.compose(kind, step("broken", nil))
			w.compose(other, step("sound", nil))
			xr := w.xr(kind, "xr", nil)
			w.fails(xr, tc.words...)

			w.create(w.configMap("settings", nil, map[string]string{"value": "one"}))
			beside := w.object(other, "beside")
			beside.Object["spec"] = map[string]any{"settings": "settings"}
			w.promptly("the bystander's reconcile", func() { w.create(beside) }, w.has(beside, "one", "status", "value"))

			broken.Handle(reader)
			w.must(broken.Restart())
			w.ready(xr)
		})
	}
}

func TestAMissingFunctionIsNamedAndItsArrivalWakesTheXR(t *testing.T) {
	w := newWorld(t)
	w.operate(retryAfter(time.Hour))
	kind := w.shared(sample)
	w.compose(kind, step("missing", nil))
	xr := w.xr(kind, "xr", nil)
	w.fails(xr, `"missing"`)
	w.function("missing", reader)
	w.ready(xr)
}

func TestAnXRDWhoseSchemaIsRefusedSaysSoAndRecovers(t *testing.T) {
	w := newWorld(t)
	w.operate()
	const bad = `{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"nonsense"}}}}}`
	xrd := definition("Refused", v1.ScopeNamespaced, bad)
	w.create(xrd)
	w.says(xrd, "Established", "refuseds."+group, "size")

	update(w, xrd, func(x *v1.CompositeResourceDefinition) {
		x.Spec.Versions[0].Schema.OpenAPIV3Schema = runtime.RawExtension{Raw: []byte(anyFields)}
	})
	w.condition(xrd, "Established", "True", "WatchingCompositeResource")
}

func TestACompositionOfAnotherKindIsNamed(t *testing.T) {
	w := newWorld(t)
	w.operate()
	w.function("reader", reader)
	kind, other := w.shared(sample), w.shared(bystander)
	elsewhere := w.compose(other, step("reader", nil)).Name
	xr := w.xr(kind, "xr", map[string]any{"crossplane": map[string]any{"compositionRef": map[string]any{"name": elsewhere}}})
	w.fails(xr, strconv.Quote(elsewhere), bystander)

	matched := w.compose(kind, step("reader", nil)).Name
	update(w, xr, func(u *unstructured.Unstructured) {
		w.must(unstructured.SetNestedField(u.Object, matched, "spec", "crossplane", "compositionRef", "name"))
	})
	w.ready(xr)
}

func TestARequirementWithoutAKindIsNamed(t *testing.T) {
	cases := map[string]struct {
		selector respond.Selector
		words    []string
	}{
		"no apiVersion": {respond.Selector{Kind: "ConfigMap", Name: "x"}, []string{"vague", `"it"`, "api_version"}},
		"no kind":       {respond.Selector{APIVersion: "v1", Name: "x"}, []string{"vague", `"it"`, "kind"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, kind, server := composing(t, "vague", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				rsp := respond.To(req)
				respond.Require(rsp, "it", tc.selector)
				return rsp, nil
			}, retryAfter(200*time.Millisecond))
			xr := w.xr(kind, "xr", nil)
			w.fails(xr, tc.words...)
			server.Handle(reader)
			w.ready(xr)
		})
	}
}
