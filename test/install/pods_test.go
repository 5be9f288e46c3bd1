// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"flag"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
)

// deployments are the folders of config that hold the operator's Deployment.
var deployments = []string{"default", "dev", "ha"}

// TestNamespaceAdmitsPods creates, as far as a dry run goes, the pods that a
// ReplicaSet would.
func TestNamespaceAdmitsPods(t *testing.T) {
	for _, dir := range deployments {
		t.Run(dir, func(t *testing.T) {
			pod, err := dryRun(t, podOf(t, dir))
			if err != nil {
				t.Fatalf("the namespace refuses the operator's pod: %v", err)
			}
			if got, want := *pod.Spec.Priority, int32(1_000_000_000); got != want {
				t.Errorf("priority: got %d, want %d", got, want)
			}
			if !mountsToken(pod) {
				t.Error("the pod gets no token of its ServiceAccount")
			}
		})
	}
}

// TestNamespaceRefusesOtherPods shows that the namespace's level is in force: it
// takes no pod that lacks any one of the restrictions.
func TestNamespaceRefusesOtherPods(t *testing.T) {
	loosen := map[string]func(*corev1.Pod){
		"may run as root":      func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsNonRoot = nil },
		"may make any syscall": func(p *corev1.Pod) { p.Spec.SecurityContext.SeccompProfile = nil },
		"keeps capabilities":   func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.Capabilities = nil },
		"may gain privileges":  func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
	}
	for what, loosen := range loosen {
		t.Run(what, func(t *testing.T) {
			pod := podOf(t, "default")
			loosen(pod)
			if _, err := dryRun(t, pod); !apierrors.IsForbidden(err) {
				t.Errorf("got error %v, want a pod that %s to be forbidden", err, what)
			}
		})
	}
}

// TestFlags holds the Deployments to the flags that the operator has.
func TestFlags(t *testing.T) {
	tests := map[string]struct {
		want func(*app.Options)
	}{
		"default": {func(*app.Options) {}},
		"ha":      {func(*app.Options) {}},
		"dev": {func(o *app.Options) {
			o.AllowDevelopmentFunctions = true
			o.LogFormat = app.LogFormatConsole
			o.LogLevel = app.LogLevelDebug
		}},
	}
	for dir, tc := range tests {
		t.Run(dir, func(t *testing.T) {
			want := app.NewOptions()
			want.Namespace = namespace
			want.LeaderElect = true
			want.MetricsBindAddress = ":8443"
			want.HealthProbeBindAddress = ":8081"
			tc.want(&want)

			if got := optionsOf(t, podOf(t, dir)); got != want {
				t.Errorf("options: got %+v, want %+v", got, want)
			}
		})
	}
}

// TestGoKnowsItsMemoryLimit follows the environment as the kubelet builds it: in
// order, each variable from those before it.
func TestGoKnowsItsMemoryLimit(t *testing.T) {
	container := podOf(t, "default").Spec.Containers[0]
	environment := map[string]string{}
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil && from.ResourceFieldRef != nil {
			limit := container.Resources.Limits[corev1.ResourceName(strings.TrimPrefix(from.ResourceFieldRef.Resource, "limits."))]
			value = strconv.FormatInt(limit.Value()/from.ResourceFieldRef.Divisor.Value(), 10)
		}
		for name, before := range environment {
			value = strings.ReplaceAll(value, "$("+name+")", before)
		}
		environment[variable.Name] = value
	}

	text, ok := strings.CutSuffix(environment["GOMEMLIMIT"], "B")
	got, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		t.Fatalf("GOMEMLIMIT %q is not a number of bytes", environment["GOMEMLIMIT"])
	}
	// Go's limit leaves two or three percent to what it doesn't count.
	limit := container.Resources.Limits.Memory().Value()
	if got < limit*97/100 || got > limit*98/100 {
		t.Errorf("GOMEMLIMIT is %d bytes of %d, want 97 to 98 percent", got, limit)
	}
}

func TestProbesAndServiceFindTheirPorts(t *testing.T) {
	for _, dir := range deployments {
		t.Run(dir, func(t *testing.T) {
			container := podOf(t, dir).Spec.Containers[0]
			ports := map[string]int32{}
			for _, port := range container.Ports {
				ports[port.Name] = port.ContainerPort
			}
			for what, probe := range map[string]*corev1.Probe{
				"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe,
			} {
				if got := ports[probe.HTTPGet.Port.String()]; got != 8081 {
					t.Errorf("%s probe: port %q is %d, want 8081", what, probe.HTTPGet.Port.String(), got)
				}
			}
			service := find[corev1.Service](t, dir, "Service")
			if got := ports[service.Spec.Ports[0].TargetPort.String()]; got != 8443 {
				t.Errorf("the metrics Service's target port is %d, want 8443", got)
			}
		})
	}
}

func TestSelectorsSelectTheOperatorsPods(t *testing.T) {
	deployment := find[appsv1.Deployment](t, "ha", "Deployment")
	selectors := map[string]*metav1.LabelSelector{
		"Deployment":          deployment.Spec.Selector,
		"NetworkPolicy":       &find[networkingv1.NetworkPolicy](t, "ha", "NetworkPolicy").Spec.PodSelector,
		"PodDisruptionBudget": find[policyv1.PodDisruptionBudget](t, "ha", "PodDisruptionBudget").Spec.Selector,
		"Service":             {MatchLabels: find[corev1.Service](t, "ha", "Service").Spec.Selector},
	}
	for _, spread := range deployment.Spec.Template.Spec.TopologySpreadConstraints {
		selectors["spread over "+spread.TopologyKey] = spread.LabelSelector
	}
	if got, want := len(selectors), 6; got != want {
		t.Fatalf("%d selectors, want %d", got, want)
	}
	for what, selector := range selectors {
		matcher, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if matcher.Empty() || !matcher.Matches(labels.Set(deployment.Spec.Template.Labels)) {
			t.Errorf("%s: selector %q does not select the operator's pods among others", what, matcher)
		}
	}
}

// podOf is the pod that the Deployment in a folder of config asks for.
func podOf(t *testing.T, dir string) *corev1.Pod {
	t.Helper()
	template := find[appsv1.Deployment](t, dir, "Deployment").Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.GenerateName = name + "-"
	pod.Namespace = namespace
	return pod
}

func dryRun(t *testing.T, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	return client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{
		DryRun:          []string{metav1.DryRunAll},
		FieldValidation: metav1.FieldValidationStrict,
	})
}

func mountsToken(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers[0].VolumeMounts, func(mount corev1.VolumeMount) bool {
		return mount.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount"
	})
}

// optionsOf parses the container's arguments as the operator does, once the
// kubelet has put the namespace into them.
func optionsOf(t *testing.T, pod *corev1.Pod) app.Options {
	t.Helper()
	options := app.NewOptions()
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	options.AddFlags(flags)
	var args []string
	for _, arg := range pod.Spec.Containers[0].Args {
		args = append(args, strings.ReplaceAll(arg, "$(POD_NAMESPACE)", pod.Namespace))
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := options.Validate(); err != nil {
		t.Fatal(err)
	}
	return options
}
