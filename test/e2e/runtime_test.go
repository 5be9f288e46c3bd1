// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
	"github.com/crosswatch-io/crosswatch/test/installation"
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

	// No kubelet runs here, but the rules for pods of the namespace are in force.
	deployment := object(&appsv1.Deployment{}, k.revision(fn, imageOne).Name)
	w.must(w.admin.Get(t.Context(), key(deployment), deployment))
	pod := object(&corev1.Pod{Spec: deployment.Spec.Template.Spec}, fn.Name)
	if err := w.admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("its pods are not admitted: %v", err)
	}
}

// revision returns the Function's revision for an image; nil if there is none.
func (k *kubelet) revision(fn *pkgv1.Function, image string) *pkgv1.FunctionRevision {
	k.w.t.Helper()
	list := &pkgv1.FunctionRevisionList{}
	k.w.must(k.w.admin.List(k.w.t.Context(), list, client.MatchingLabels{pkgv1.LabelParentPackage: fn.Name}))
	for i := range list.Items {
		if list.Items[i].Spec.Image == image {
			return &list.Items[i]
		}
	}
	return nil
}

// object names one of the operator's namespace.
func object[T client.Object](obj T, name string) T {
	obj.SetNamespace(installation.Namespace)
	obj.SetName(name)
	return obj
}

// upgrade gives the Function another image.
func (w *world) upgrade(fn *pkgv1.Function, image string) {
	w.t.Helper()
	update(w, fn, func(f *pkgv1.Function) { f.Spec.Package = image })
}

// busy keeps XRs reconciling until the returned function is called.
func (w *world) busy(xrs []*unstructured.Unstructured) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Appendf(nil, `{"spec":{"note":"%d"}}`, i)
			err := w.admin.Patch(ctx, xrs[i%len(xrs)].DeepCopy(), client.RawPatch(types.MergePatchType, patch))
			if err != nil && ctx.Err() == nil {
				w.t.Errorf("cannot touch an XR: %v", err)
				return
			}
		}
	})
	return func() { cancel(); running.Wait() }
}

func TestAnImageUpgradeUnderLoadFailsNoReconcile(t *testing.T) {
	w, k, fn := running(t, map[string]functions.Handler{imageOne: composes("v1"), imageTwo: composes("v2")})
	kind := w.shared(sample)
	w.compose(kind, step(fn.Name, nil))
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")
	var xrs []*unstructured.Unstructured
	for i := range 10 {
		xrs = append(xrs, w.xr(kind, fmt.Sprintf("xr-%d", i), nil))
	}
	w.ready(xrs...)
	before := w.failures(fn.Name)

	stop := w.busy(xrs)
	one := k.server(imageOne)
	w.eventually("load", func() (bool, string) { return one.TotalCalls() > 40, strconv.Itoa(one.TotalCalls()) })
	w.upgrade(fn, imageTwo)
	for _, xr := range xrs {
		w.eventually("the new version's answer", w.has(xr, "v2", "status", "value"))
	}
	w.eventually("the old revision to be inactive", func() (bool, string) {
		state := k.revision(fn, imageOne).Spec.DesiredState
		return state == pkgv1.RevisionInactive, string(state)
	})
	two, calls := k.server(imageTwo), k.server(imageTwo).TotalCalls()
	w.eventually("load on the new version", func() (bool, string) { return two.TotalCalls() > calls+30, strconv.Itoa(two.TotalCalls()) })
	late := one.TotalCalls()
	w.eventually("more load on the new version", func() (bool, string) { return two.TotalCalls() > calls+60, strconv.Itoa(two.TotalCalls()) })
	stop()

	if n := w.failures(fn.Name) - before; n != 0 {
		t.Errorf("%v reconciles or calls failed", n)
	}
	if n := one.TotalCalls() - late; n != 0 {
		t.Errorf("the old version was called %d times although the new one is in force", n)
	}
	current := k.revision(fn, imageTwo)
	w.eventually("the Function's Service to lead to the new revision",
		w.has(object(&corev1.Service{}, fn.Name), current.Name, "spec", "selector", "pkg.crossplane.io/revision"))
	if k.server(imageOne) == nil {
		t.Error("the old version is gone already, although calls may be on their way to it")
	}
}

func TestAnUpgradeThatNeverGetsReadyLeavesTheOldVersionServing(t *testing.T) {
	const broken = "registry.example.org/builder:broken"
	w, k, fn := running(t, map[string]functions.Handler{imageOne: composes("v1")})
	kind := w.shared(sample)
	w.compose(kind, step(fn.Name, nil))
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")

	w.upgrade(fn, broken)
	message := w.condition(fn, "Healthy", "False", "UnhealthyPackageRevision")
	w.eventually("the Function to say what serves", func() (bool, string) {
		message, _ = w.conditionOf(fn, "Healthy")["message"].(string)
		return strings.Contains(message, "no available pod") || strings.Contains(message, "has yet to see"), message
	})
	old := k.revision(fn, imageOne)
	if want := fmt.Sprintf("FunctionRevision %q serves meanwhile", old.Name); !strings.Contains(message, want) {
		t.Errorf("the Function says %q, want it to say: %s", message, want)
	}
	xr := w.xr(kind, "xr", nil)
	w.ready(xr)
	if got := w.field(xr, "status", "value"); got != "v1" {
		t.Errorf("the XR was composed by %v, want v1", got)
	}

	// The way back makes the old revision the newest one.
	w.upgrade(fn, imageOne)
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")
	w.eventually("the broken revision to be out of force", func() (bool, string) {
		was, now := k.revision(fn, broken), k.revision(fn, imageOne)
		return was.Spec.DesiredState == pkgv1.RevisionInactive && now.Spec.Revision > was.Spec.Revision, fmt.Sprint(was.Spec, now.Spec)
	})
}

func TestWhatIsChangedByHandIsRepaired(t *testing.T) {
	w, k, fn := running(t, map[string]functions.Handler{imageOne: composes("v1")})
	kind := w.shared(sample)
	w.compose(kind, step(fn.Name, nil))
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")
	name := k.revision(fn, imageOne).Name

	deployment := object(&appsv1.Deployment{}, name)
	update(w, deployment, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "registry.example.org/another:v1"
	})
	w.eventually("the image to be back", func() (bool, string) {
		w.must(w.admin.Get(t.Context(), key(deployment), deployment))
		image := deployment.Spec.Template.Spec.Containers[0].Image
		return image == imageOne, image
	})
	service := object(&corev1.Service{}, fn.Name)
	update(w, service, func(s *corev1.Service) { s.Spec.Selector["pkg.crossplane.io/revision"] = "another" })
	w.eventually("the Service to lead to the revision", w.has(service, name, "spec", "selector", "pkg.crossplane.io/revision"))
	for _, obj := range []client.Object{
		deployment, service, object(&corev1.Service{}, name), object(&corev1.ServiceAccount{}, name),
		object(&corev1.Secret{}, name+"-tls-server"), object(&corev1.Secret{}, installation.ClientSecret),
	} {
		w.must(w.admin.Get(t.Context(), key(obj), obj))
		before := obj.GetUID()
		w.must(w.admin.Delete(t.Context(), obj))
		w.eventually(fmt.Sprintf("%T %s to be back", obj, obj.GetName()), func() (bool, string) {
			uid := w.live(obj).GetUID()
			return uid != "" && uid != before, string(uid)
		})
	}

	certificate := func() string {
		w.must(w.admin.Get(t.Context(), key(deployment), deployment))
		return deployment.Spec.Template.Annotations["crosswatch.io/certificates"]
	}
	before := certificate()
	secret := object(&corev1.Secret{}, name+"-tls-server")
	update(w, secret, func(s *corev1.Secret) { s.Data[corev1.TLSCertKey] = []byte("nonsense") })
	w.eventually("pods with another certificate", func() (bool, string) { return certificate() != before, before })
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")
	w.ready(w.xr(kind, "xr", nil))
}

func TestAFunctionThatNothingHappensToCostsNothing(t *testing.T) {
	w, k, fn := running(t, map[string]functions.Handler{imageOne: composes("v1")})
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")
	writes := func() int {
		entries, err := w.auditLog.Entries(func(e *auditv1.Event) bool {
			return isOperators(e) && e.Verb != "watch" && e.ObjectRef != nil && e.ObjectRef.Resource != "dependencywatchstatuses"
		})
		w.must(err)
		return len(entries)
	}
	before := w.settled(writes)
	update(w, k.revision(fn, imageOne), func(r *pkgv1.FunctionRevision) { r.Annotations = map[string]string{"note": "wakes the controllers"} })
	update(w, fn, func(f *pkgv1.Function) { f.Annotations = map[string]string{"note": "wakes the controllers"} })
	if n := w.settled(writes) - before; n != 0 {
		t.Errorf("%d requests although nothing changed", n)
	}
}

func TestADeletedFunctionLeavesNothing(t *testing.T) {
	w, k, fn := running(t, map[string]functions.Handler{imageOne: composes("v1"), imageTwo: composes("v2")})
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")
	w.upgrade(fn, imageTwo)
	w.eventually("the new revision to serve", func() (bool, string) {
		r := k.revision(fn, imageTwo)
		return r != nil && r.Status.Endpoint != "", fmt.Sprint(r)
	})

	w.must(w.admin.Delete(t.Context(), fn))
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{},
	} {
		w.eventually(fmt.Sprintf("%T to be empty", list), func() (bool, string) {
			w.must(w.admin.List(t.Context(), list, client.MatchingLabels{"pkg.crossplane.io/function": fn.Name}))
			return meta.LenList(list) == 0, strconv.Itoa(meta.LenList(list))
		})
	}
	for _, image := range []string{imageOne, imageTwo} {
		w.eventually("the revision to be gone", func() (bool, string) { return k.revision(fn, image) == nil, image })
	}
}

func TestADeploymentRuntimeConfigIsFollowed(t *testing.T) {
	w, k, fn := running(t, map[string]functions.Handler{imageOne: composes("v1")})
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")
	name := "large-" + w.namespace
	update(w, fn, func(f *pkgv1.Function) { f.Spec.RuntimeConfigRef = &pkgv1.RuntimeConfigReference{Name: name} })
	if message := w.condition(fn, "Healthy", "False", "UnhealthyPackageRevision"); !strings.Contains(message, name) {
		t.Errorf("the Function says %q, which does not name the configuration that is missing", message)
	}

	config := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2),
		Selector: &metav1.LabelSelector{},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"scrape": "true"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "package-runtime", Args: []string{"--debug"}}}},
		},
	}}
	w.create(config)
	w.condition(fn, "Healthy", "True", "HealthyPackageRevision")
	deployment := object(&appsv1.Deployment{}, k.revision(fn, imageOne).Name)
	w.must(w.admin.Get(t.Context(), key(deployment), deployment))
	if got := deployment.Spec.Template.Spec.Containers[0]; *deployment.Spec.Replicas != 2 || !slices.Equal(got.Args, []string{"--debug"}) || got.Image != imageOne {
		t.Errorf("the Deployment does not follow the configuration: %d replicas of %+v", *deployment.Spec.Replicas, got)
	}
	if got := deployment.Spec.Template; got.Labels["team"] != "a" || got.Annotations["scrape"] != "true" {
		t.Errorf("the pods have labels %v and annotations %v", got.Labels, got.Annotations)
	}

	update(w, config, func(c *v1beta1.DeploymentRuntimeConfig) {
		c.Spec.DeploymentTemplate.Spec.Replicas = nil
		c.Spec.ServiceTemplate = &v1beta1.ServiceTemplate{Metadata: &v1beta1.TemplateMetadata{Annotations: map[string]string{"mesh": "off"}}}
		c.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.TemplateMetadata{Name: ptr.To(name)}}
	})
	w.eventually("one replica again", w.has(deployment, 1, "spec", "replicas"))
	w.eventually("the pods to have the ServiceAccount", w.has(deployment, name, "spec", "template", "spec", "serviceAccountName"))
	w.eventually("the Function's Service to be annotated", w.has(object(&corev1.Service{}, fn.Name), "off", "metadata", "annotations", "mesh"))
	w.remove(object(&corev1.ServiceAccount{}, name))
}
