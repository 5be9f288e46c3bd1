// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// What a step required last time is in its next first request, in the field by
// which it asked: one call is enough.
func TestAStepWhoseRequirementsAreKnownIsCalledOnce(t *testing.T) {
	cases := map[string]struct {
		ask      func(*fnv1.RunFunctionResponse, string)
		answered func(*fnv1.RunFunctionRequest) bool
	}{
		"resources": {
			ask: func(rsp *fnv1.RunFunctionResponse, namespace string) {
				respond.Require(rsp, "it", settings(namespace, "settings"))
			},
			answered: func(req *fnv1.RunFunctionRequest) bool {
				found, _ := respond.Required(req, "it")
				return len(found) == 1
			},
		},
		"extra_resources": {
			ask: func(rsp *fnv1.RunFunctionResponse, namespace string) {
				respond.RequireExtra(rsp, "it", settings(namespace, "settings"))
			},
			answered: func(req *fnv1.RunFunctionRequest) bool {
				found, _ := respond.RequiredExtra(req, "it")
				_, both := respond.Required(req, "it")
				return len(found) == 1 && !both
			},
		},
		"schemas": {
			ask: func(rsp *fnv1.RunFunctionResponse, _ string) {
				respond.RequireSchema(rsp, "it", gadgets.GroupVersion().String(), gadgets.Kind)
			},
			answered: func(req *fnv1.RunFunctionRequest) bool {
				schema, _ := respond.RequiredSchema(req, "it")
				_, found, _ := unstructured.NestedMap(schema, "properties", "spec", "properties", "size")
				return found
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, kind, server := composing(t, "seeded", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
				rsp := respond.To(req)
				tc.ask(rsp, functions.XR(req).Namespace)
				respond.Ready(rsp, fnv1.Ready_READY_TRUE)
				return rsp, nil
			})
			w.create(w.configMap("settings", nil, nil))
			xr := w.xr(kind, "xr", nil)
			w.ready(xr)
			w.settled(server.TotalCalls)

			server.Reset()
			update(w, xr, func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{"crossplane.io/reconcile-requested-at": "now"})
			})
			w.eventually("the acknowledgement", w.has(xr, "now", "status", "lastHandledReconcileAt"))
			// The acknowledgement is a write to the XR's status, which a function
			// can see: it leads to one more run. Each is one call.
			if calls := w.settled(server.TotalCalls); calls > 2 {
				t.Errorf("two runs made %d calls, want one each", calls)
			}
			for i, req := range server.Requests(key(xr)) {
				if !tc.answered(req) {
					t.Errorf("request %d lacks what the step required last time", i)
				}
			}
		})
	}
}
