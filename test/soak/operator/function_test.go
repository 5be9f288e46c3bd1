// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
	"github.com/crosswatch-io/crosswatch/test/soak"
)

// never is a TTL after which nothing is asked again.
const never = 24 * time.Hour

// witness is the function of both kinds of XRs. It sees what the plan says, and
// remembers that for those that don't say it themselves.
type witness struct {
	said sync.Map // by UID of an XR
}

func (w *witness) handle(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	respond.TTL(rsp, never)
	respond.Ready(rsp, fnv1.Ready_READY_TRUE)
	xr := &unstructured.Unstructured{Object: respond.Observed(req)}
	plan, shown := soak.PlanOf(xr), true
	saw, err := plan.See(func(ref dependency.Reference) ([]*unstructured.Unstructured, error) {
		found, asked := require(req, rsp, ref)
		shown = shown && asked
		return found, nil
	})
	if err != nil || !shown {
		return rsp, err
	}
	for i, name := range composedOf(xr, plan) {
		composed := soak.Thing(soak.ComposedKind, xr.GetNamespace(), name, nil, saw, "")
		respond.Desire(rsp, fmt.Sprint("composed-", i), composed.Object, fnv1.Ready_READY_TRUE)
	}
	if xr.GetKind() == soak.SilentKind {
		w.said.Store(xr.GetUID(), saw)
	} else {
		respond.Status(rsp, map[string]any{"saw": saw})
	}
	return rsp, nil
}

// require asks for what the reference means, and returns it if the request has it.
func require(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, ref dependency.Reference) (found []*unstructured.Unstructured, asked bool) {
	name := fmt.Sprintf("%s %s/%s %v", ref.GVK.Kind, ref.Namespace, ref.Name, ref.Labels)
	respond.Require(rsp, name, respond.Selector{
		APIVersion: ref.GVK.GroupVersion().String(), Kind: ref.GVK.Kind, Namespace: ref.Namespace, Name: ref.Name, Labels: ref.Labels,
	})
	objects, asked := respond.Required(req, name)
	for _, o := range objects {
		found = append(found, &unstructured.Unstructured{Object: o})
	}
	soak.Sort(found)
	return found, asked
}

// composedOf returns the names of what an XR composes. What an XR of the same name left
// is not among it: it goes when the garbage collector comes to it.
func composedOf(xr *unstructured.Unstructured, p soak.Plan) []string {
	var out []string
	for i := range p.Composes {
		out = append(out, fmt.Sprintf("%s-%s-%d", xr.GetName(), xr.GetUID(), i))
	}
	return out
}
