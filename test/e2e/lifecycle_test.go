// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

func TestAKindThatMayBeReadAndNotWrittenIsComposedAsSoonAsItMayBe(t *testing.T) {
	w := newWorld(t)
	const resource = "networkpolicies"
	w.provokesRefusals(resource)
	w.operate(func(o *app.Options, _ *rest.Config) {
		o.RetryBaseDelay, o.RetryMaxDelay = 100*time.Millisecond, time.Hour
	})
	w.function("guard", func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		respond.Desire(rsp, "policy", map[string]any{
			"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": map[string]any{"podSelector": map[string]any{}},
		}, fnv1.Ready_READY_TRUE)
		return rsp, nil
	})
	kind := w.shared(sample)
	w.compose(kind, step("guard", nil))
	rule := rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}}
	w.grant(rule)
	xr := w.xr(kind, "xr", nil)
	w.fails(xr, "NetworkPolicy", "forbidden")

	// By then the next attempt is seconds away, so that only the grant itself can cause one.
	w.eventually("six attempts", func() (bool, string) {
		_, forbidden := w.requests(resource)
		writes := slices.DeleteFunc(forbidden, func(r auditv1.Event) bool { return r.Verb != "patch" })
		return len(writes) >= 6, strconv.Itoa(len(writes))
	})
	update(w, clusterRole(w.namespace+"-"+resource), func(r *rbacv1.ClusterRole) {
		r.Rules[0].Verbs = append(r.Rules[0].Verbs, "create", "patch", "delete")
	})
	took := w.eventually("the XR to be composed", func() (bool, string) {
		c := w.conditionOf(xr, "Synced")
		return c["status"] == "True", fmt.Sprint(c)
	})
	if took > 2*time.Second {
		t.Errorf("the grant took %s to work, want at most 2s", took.Round(time.Millisecond))
	}
}

func TestAnXRDThatGetsAnotherSchemaOrIsMadeAgainAtOnceWithOneMissesNothing(t *testing.T) {
	w := newWorld(t)
	w.operate()
	w.function("reader", reader)
	kind := w.define("Reborn")
	w.compose(kind, step("reader", nil))
	config := w.configMap("settings", nil, map[string]string{"value": "one"})
	w.create(config)
	spec := map[string]any{"settings": "settings"}
	xr := w.xr(kind, "xr", spec)
	w.eventually("the XR to be composed", w.has(xr, "one", "status", "value"))
	change := func(value string) func() {
		return func() { update(w, config, func(c *configMap) { c.Data["value"] = value }) }
	}

	xrd := definition("Reborn", v1.ScopeNamespaced, anyFields)
	const fewFields = `{"type":"object","properties":{
		"spec":{"type":"object","required":["settings"],"properties":{"settings":{"type":"string"}}},
		"status":{"type":"object","properties":{"asked":{"type":"boolean"},"value":{"type":"string"}}}}}`
	update(w, xrd, func(d *v1.CompositeResourceDefinition) {
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Raw = []byte(fewFields)
	})
	w.promptly("a change while the schema becomes another", change("two"), w.has(xr, "two", "status", "value"))

	w.must(w.admin.Delete(t.Context(), xrd))
	again := definition("Reborn", v1.ScopeNamespaced, anyFields)
	w.eventually("the XRD to be made again", func() (bool, string) {
		err := w.admin.Create(t.Context(), again)
		return err == nil, fmt.Sprint(err)
	})
	w.established("Reborn")
	w.outgrow(kind)
	xr = w.xr(kind, "xr", spec)
	w.eventually("the XR to be composed", w.has(xr, "two", "status", "value"))
	w.promptly("a change after all that", change("three"), w.has(xr, "three", "status", "value"))
}

// late is a kind that is not there before a test creates its CRD.
var late = schema.GroupVersionKind{Group: "late.crosswatch.io", Version: "v1", Kind: "Late"}

func lateCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "lates." + late.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: late.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "lates", Kind: late.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: late.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

// hopeful is a function that requires every late object, and composes one.
func hopeful(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	apiVersion := late.GroupVersion().String()
	respond.Require(rsp, "it", respond.Selector{APIVersion: apiVersion, Kind: late.Kind})
	respond.Desire(rsp, "own", map[string]any{
		"apiVersion": apiVersion, "kind": late.Kind, "metadata": map[string]any{"name": functions.XR(req).Name},
	}, fnv1.Ready_READY_TRUE)
	return rsp, nil
}

// Case A4: XRs wait for a kind, and once it has gone again neither they nor their
// XRD do: not for the watch that has lost it, nor for what can't be read any more.
func TestA4AKindThatXRsDependOnMayComeAfterThemAndGoBeforeTheirXRD(t *testing.T) {
	w := newWorld(t)
	w.provokesRefusals("lates") // what is composed of a kind that is going is refused as forbidden
	w.operate(retryAfter(time.Hour))
	w.function("hopeful", hopeful)
	kind := w.define("Bereft")
	w.compose(kind, step("hopeful", nil))
	xr := w.xr(kind, "xr", nil)
	missing := []string{"hopeful", `"it"`, late.Kind}
	w.fails(xr, missing...)
	crd := lateCRD()
	w.create(crd)
	w.ready(xr)

	w.remove(crd)
	w.fails(xr, missing...)
	w.fails(w.xr(kind, "younger", nil), missing...)
	start := time.Now()
	w.remove(definition(kind.Kind, v1.ScopeNamespaced, anyFields))
	took := time.Since(start).Round(time.Millisecond)
	t.Logf("the XRD was gone after %s", took)
	if took > 10*time.Second {
		t.Errorf("the XRD was gone after %s, want seconds", took)
	}
	if n := w.counted("crosswatch_watches", map[string]string{"state": "NotFound"}); n != 0 {
		t.Errorf("%.0f watches are left of kinds that are not there", n)
	}
}
