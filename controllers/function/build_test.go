// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

func configured(template *v1beta1.DeploymentTemplate) *v1beta1.DeploymentRuntimeConfig {
	return &v1beta1.DeploymentRuntimeConfig{Spec: v1beta1.DeploymentRuntimeConfigSpec{DeploymentTemplate: template}}
}

// TestAFunctionFindsWhatTheContractPromises is about functions that were made for any engine of this API.
func TestAFunctionFindsWhatTheContractPromises(t *testing.T) {
	fn := walls(imageOne)
	fn.Spec.PackagePullPolicy = ptr.To(corev1.PullAlways)
	fn.Spec.PackagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	revision := revisionOf(fn, 1, pkgv1.RevisionActive)
	d := deploymentOf(revision, &v1beta1.DeploymentRuntimeConfig{}, "account", "a-hash")

	pod, container := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
	environment := map[string]string{}
	for _, variable := range container.Env {
		environment[variable.Name] = variable.Value
		if variable.ValueFrom != nil {
			environment[variable.Name] = variable.ValueFrom.FieldRef.FieldPath
		}
	}
	wantEnvironment := map[string]string{
		"FUNCTION_NAME": "walls", "REVISION_NAME": revision.Name, "REVISION_UID": string(revision.UID),
		"TLS_SERVER_CERTS_DIR": "/tls/server", "POD_NAMESPACE": "metadata.namespace",
	}
	if diff := cmp.Diff(wantEnvironment, environment); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if want := []corev1.ContainerPort{{Name: "grpc", ContainerPort: 9443, Protocol: "TCP"}}; !slices.Equal(container.Ports, want) {
		t.Errorf("ports are %v", container.Ports)
	}
	if got := container.VolumeMounts; len(got) != 1 || got[0].MountPath != "/tls/server" || got[0].Name != pod.Volumes[0].Name {
		t.Errorf("mounts are %v", got)
	}
	if got, want := pod.Volumes[0].Secret.SecretName, *revision.Spec.TLSServerSecretName; got != want {
		t.Errorf("Secret %q is mounted, want %q", got, want)
	}
	if container.Name != "package-runtime" || container.Image != imageOne || container.ImagePullPolicy != corev1.PullAlways {
		t.Errorf("the container is %s of %s, pulled %s", container.Name, container.Image, container.ImagePullPolicy)
	}
	if !slices.Equal(pod.ImagePullSecrets, fn.Spec.PackagePullSecrets) || pod.ServiceAccountName != "account" {
		t.Errorf("the pod has pull secrets %v and ServiceAccount %q", pod.ImagePullSecrets, pod.ServiceAccountName)
	}
	if user := pod.SecurityContext; *user.RunAsUser != 2000 || *user.RunAsGroup != 2000 || !*user.RunAsNonRoot {
		t.Errorf("the pod runs as %v", user)
	}
	if rights := container.SecurityContext; *rights.AllowPrivilegeEscalation || !*rights.ReadOnlyRootFilesystem || rights.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the container may %v", rights)
	}
	if probe := container.ReadinessProbe; probe == nil || probe.TCPSocket == nil || probe.TCPSocket.Port.String() != "grpc" {
		t.Errorf("whether it can be called is found out by %v", probe)
	}
	stop := container.Lifecycle
	if stop == nil || stop.PreStop.Sleep.Seconds <= int64(function.DefaultCallTimeout.Seconds()) {
		t.Errorf("before it stops it does %v, want it to serve for longer than a call takes", stop)
	} else if *pod.TerminationGracePeriodSeconds <= stop.PreStop.Sleep.Seconds {
		t.Errorf("it is killed after %d s, before it was told to stop", *pod.TerminationGracePeriodSeconds)
	}
	if d.Spec.MinReadySeconds < 1 {
		t.Error("a pod may be called before DNS knows it")
	}
	if n := d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue(); n != 0 {
		t.Errorf("%d pods may be missing while they are replaced", n)
	}
}

func TestAConfigurationIsKeptWhereItSaysSomething(t *testing.T) {
	template := &v1beta1.DeploymentTemplate{
		Metadata: &v1beta1.TemplateMetadata{Labels: map[string]string{"team": "a", labelRevision: "forged"}, Annotations: map[string]string{"note": "x"}},
		Spec: &appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				ServiceAccountName: "mine",
				SecurityContext:    &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](3000)},
				Containers: []corev1.Container{
					{Name: "sidecar", Image: "sidecar:v1"},
					{
						Name: "package-runtime", Image: "debug:v1", Args: []string{"--debug"},
						Env: []corev1.EnvVar{{Name: "MODE", Value: "x"}, {Name: "FUNCTION_NAME", Value: "forged"}},
					},
				},
			}},
		},
	}
	config := configured(template)
	before := config.DeepCopy()
	revision := revisionOf(walls(imageOne), 1, pkgv1.RevisionActive)
	d := deploymentOf(revision, config, "account", "a-hash")

	if diff := cmp.Diff(before, config); diff != "" {
		t.Errorf("the configuration, which others share, was changed (-before +after):\n%s", diff)
	}
	pod := d.Spec.Template.Spec
	if *d.Spec.Replicas != 3 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || pod.ServiceAccountName != "mine" {
		t.Errorf("it got lost: %d replicas, strategy %s, ServiceAccount %q", *d.Spec.Replicas, d.Spec.Strategy.Type, pod.ServiceAccountName)
	}
	if *pod.SecurityContext.RunAsUser != 3000 || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("the pod runs as %v, want what is said kept and the rest filled", pod.SecurityContext)
	}
	if d.Labels["team"] != "a" || d.Labels[labelRevision] != revision.Name || d.Annotations["note"] != "x" {
		t.Errorf("labels are %v, annotations %v", d.Labels, d.Annotations)
	}
	if len(pod.Containers) != 2 || pod.Containers[1].Image != "debug:v1" || !slices.Equal(pod.Containers[1].Args, []string{"--debug"}) {
		t.Errorf("containers are %v", pod.Containers)
	}
	for _, variable := range pod.Containers[1].Env {
		if variable.Name == "FUNCTION_NAME" && variable.Value != "walls" {
			t.Errorf("the function is told a name that is not its own: %s", variable.Value)
		}
	}
}

func TestWhatACallDependsOnCannotBeConfigured(t *testing.T) {
	pod := corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "tls-server-certs"}, {Name: "scratch"}},
		Containers: []corev1.Container{{
			Name: "package-runtime",
			Ports: []corev1.ContainerPort{
				{Name: "grpc", ContainerPort: 8443}, {Name: "mine", ContainerPort: 9443}, {Name: "metrics", ContainerPort: 8080},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/tls/server"}, {Name: "scratch", MountPath: "/tmp"}},
		}},
	}
	config := configured(&v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pod}}})
	revision := revisionOf(walls(imageOne), 1, pkgv1.RevisionActive)
	got := deploymentOf(revision, config, "account", "a-hash").Spec.Template.Spec

	wantPorts := []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}, {Name: "grpc", ContainerPort: 9443, Protocol: "TCP"}}
	if diff := cmp.Diff(wantPorts, got.Containers[0].Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	wantMounts := []corev1.VolumeMount{{Name: "scratch", MountPath: "/tmp"}, {Name: "tls-server-certs", MountPath: "/tls/server", ReadOnly: true}}
	if diff := cmp.Diff(wantMounts, got.Containers[0].VolumeMounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if len(got.Volumes) != 2 || got.Volumes[0].Name != "scratch" || got.Volumes[1].Secret.SecretName != *revision.Spec.TLSServerSecretName {
		t.Errorf("volumes are %v", got.Volumes)
	}
}

func TestCommonLabelsAndAnnotationsAreOnAllThatRunsAFunction(t *testing.T) {
	fn := walls(imageOne)
	fn.Spec.CommonLabels, fn.Spec.CommonAnnotations = map[string]string{"team": "a"}, map[string]string{"note": "x"}
	revision, none := revisionOf(fn, 1, pkgv1.RevisionActive), &v1beta1.DeploymentRuntimeConfig{}
	d := deploymentOf(revision, none, "account", "a-hash")
	account, _ := serviceAccountOf(revision, none)
	for what, object := range map[string]metav1.Object{
		"Deployment": d, "Pod": &d.Spec.Template, "Service": serviceOf(revision, "walls", none), "ServiceAccount": account,
	} {
		if object.GetLabels()["team"] != "a" || object.GetAnnotations()["note"] != "x" {
			t.Errorf("the %s has labels %v and annotations %v", what, object.GetLabels(), object.GetAnnotations())
		}
	}
}

func TestAPullSecretIsNamedOnce(t *testing.T) {
	fn := walls(imageOne)
	fn.Spec.PackagePullSecrets = []corev1.LocalObjectReference{{Name: "both"}, {Name: "package"}, {Name: "package"}}
	pod := corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "config"}, {Name: "both"}}}
	config := configured(&v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pod}}})
	d := deploymentOf(revisionOf(fn, 1, pkgv1.RevisionActive), config, "account", "a-hash")
	want := []corev1.LocalObjectReference{{Name: "config"}, {Name: "both"}, {Name: "package"}}
	if diff := cmp.Diff(want, d.Spec.Template.Spec.ImagePullSecrets); diff != "" {
		t.Errorf("pull secrets (-want +got):\n%s", diff)
	}
}

func TestHowPodsAreReplaced(t *testing.T) {
	rolling := func(surge, unavailable int32) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(unavailable))},
		}
	}
	untyped := rolling(3, 1)
	untyped.Type = ""
	cases := map[string]struct{ said, want appsv1.DeploymentStrategy }{
		"NothingSaid":     {want: rolling(1, 0)},
		"OnlyTheType":     {said: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}, want: rolling(1, 0)},
		"AllButTheType":   {said: untyped, want: rolling(3, 1)},
		"SomethingElse":   {said: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, want: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}},
		"EverythingIsSet": {said: rolling(2, 0), want: rolling(2, 0)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := configured(&v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{Strategy: tc.said}})
			d := deploymentOf(revisionOf(walls(imageOne), 1, pkgv1.RevisionActive), config, "account", "a-hash")
			if diff := cmp.Diff(tc.want, d.Spec.Strategy); diff != "" {
				t.Errorf("strategy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsFilledDoesNotContradictAConfiguration(t *testing.T) {
	type outcome struct{ NonRoot, Escalation *bool }
	root := ptr.To[int64](0)
	cases := map[string]struct {
		pod       *corev1.PodSecurityContext
		container *corev1.SecurityContext
		want      outcome
	}{
		"NothingSaid":     {want: outcome{NonRoot: ptr.To(true), Escalation: ptr.To(false)}},
		"RootPod":         {pod: &corev1.PodSecurityContext{RunAsUser: root}, want: outcome{Escalation: ptr.To(false)}},
		"RootContainer":   {container: &corev1.SecurityContext{RunAsUser: root}, want: outcome{Escalation: ptr.To(false)}},
		"Privileged":      {container: &corev1.SecurityContext{Privileged: ptr.To(true)}, want: outcome{NonRoot: ptr.To(true)}},
		"Administrator":   {container: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}, want: outcome{NonRoot: ptr.To(true)}},
		"SaidItsOwnWay":   {pod: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(false)}, want: outcome{NonRoot: ptr.To(false), Escalation: ptr.To(false)}},
		"MayEscalateOnly": {container: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(true)}, want: outcome{NonRoot: ptr.To(true), Escalation: ptr.To(true)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := corev1.PodSpec{SecurityContext: tc.pod, Containers: []corev1.Container{{Name: containerName, SecurityContext: tc.container}}}
			config := configured(&v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pod}}})
			got := deploymentOf(revisionOf(walls(imageOne), 1, pkgv1.RevisionActive), config, "account", "a-hash").Spec.Template.Spec
			if diff := cmp.Diff(tc.want, outcome{got.SecurityContext.RunAsNonRoot, got.Containers[0].SecurityContext.AllowPrivilegeEscalation}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsStartAnewWithOtherCertificates(t *testing.T) {
	revision := revisionOf(walls(imageOne), 1, pkgv1.RevisionActive)
	build := func(certificates string) *appsv1.Deployment {
		return deploymentOf(revision, configured(nil), "account", certificates)
	}
	if diff := cmp.Diff(build("a").Spec.Template, build("a").Spec.Template); diff != "" {
		t.Errorf("the pods would be replaced for nothing:\n%s", diff)
	}
	if cmp.Equal(build("a").Spec.Template, build("b").Spec.Template) {
		t.Error("the pods would keep the certificate that they started with")
	}
}

func TestServicesAreHeadlessAndLeadToOneRevision(t *testing.T) {
	revision := revisionOf(walls(imageOne), 1, pkgv1.RevisionActive)
	s := serviceOf(revision, "walls", &v1beta1.DeploymentRuntimeConfig{})
	pods := deploymentOf(revision, configured(nil), "account", "").Spec.Template.Labels
	for label, value := range s.Spec.Selector {
		if pods[label] != value {
			t.Errorf("the Service wants label %s=%s, the pods have %v", label, value, pods)
		}
	}
	if s.Name != "walls" || s.Spec.ClusterIP != corev1.ClusterIPNone || s.Spec.Ports[0].Port != 9443 || s.Spec.Selector[labelRevision] != revision.Name {
		t.Errorf("the Service %q is %+v", s.Name, s.Spec)
	}
}

func TestAServiceAccountThatIsNamedIsNobodysAlone(t *testing.T) {
	revision := revisionOf(walls(imageOne), 1, pkgv1.RevisionActive)
	config := &v1beta1.DeploymentRuntimeConfig{}
	if account, named := serviceAccountOf(revision, config); named || account.Name != revision.Name {
		t.Errorf("got %q, named %t", account.Name, named)
	}
	config.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.TemplateMetadata{Name: ptr.To("shared")}}
	account, named := serviceAccountOf(revision, config)
	if !named || account.Name != "shared" || account.Labels[labelRevision] != "" {
		t.Errorf("got %q, named %t, with labels %v", account.Name, named, account.Labels)
	}
}
