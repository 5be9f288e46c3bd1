// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

const (
	authoritySecret = "crossplane-root-ca"
	imageOne        = "registry.example.org/builder:v1"
	imageTwo        = "registry.example.org/builder:v2"
)

// runs lets the operator run functions.
func runs(o *app.Options, _ *rest.Config) { o.FunctionRuntime = app.FunctionRuntimeDeployment }

// running returns a world in which the operator runs functions of these images,
// a Function of the first image, and what stands in for kubelets.
func running(t *testing.T, images map[string]functions.Handler) (*world, *kubelet, *pkgv1.Function) {
	t.Helper()
	keepClientSecret(t)
	w := newWorld(t)
	k := runFunctions(w, images)
	w.operate(runs)
	fn := &pkgv1.Function{
		ObjectMeta: metav1.ObjectMeta{Name: "builder-" + w.namespace},
		Spec:       pkgv1.FunctionSpec{Package: imageOne},
	}
	w.create(fn)
	return w, k, fn
}

// composes returns a function whose answers tell its version, and are good for
// one call only.
func composes(version string) functions.Handler {
	return func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp := respond.To(req)
		respond.TTL(rsp, 0)
		respond.Status(rsp, map[string]any{"value": version})
		respond.Desire(rsp, "gadget", gadget(functions.XR(req).Name, map[string]any{"color": version}), fnv1.Ready_READY_TRUE)
		return rsp, nil
	}
}

func TestAFunctionIsInstalledAndComposes(t *testing.T) {
	w, k, fn := running(t, map[string]functions.Handler{imageOne: composes("v1")})
	kind := w.shared(sample)
	w.compose(kind, step(fn.Name, nil))
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)
	w.condition(fn, "Installed", "True", "ActivePackageRevision")
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")
	if calls := k.server(imageOne).Calls(key(xr)); calls == 0 {
		t.Error("the XR is ready, but the function was not called")
	}
}
