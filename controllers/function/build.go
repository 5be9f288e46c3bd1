// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
)

const (
	// user is who a function runs as.
	user int64 = 2000

	// A pod counts as available after minReady seconds, by which time DNS leads to it: who asks too early is told for a while that
	// there is no such name.
	minReady int32 = 5

	// A pod that is replaced goes on serving for stopDelay, longer than a call takes, before it is told to stop: by then no call
	// is made to it any more. Functions made with an SDK drop the calls that they are in when they stop.
	stopDelay   int64 = 25
	gracePeriod int64 = 35

	certificatesVolume     = "tls-server-certs"
	annotationCertificates = "crosswatch.io/certificates"
)

// serviceAccountOf returns the ServiceAccount of a revision's pods, and whether the configuration names one.
func serviceAccountOf(revision *pkgv1.FunctionRevision, config *v1beta1.DeploymentRuntimeConfig) (account *corev1.ServiceAccount, named bool) {
	var template *v1beta1.TemplateMetadata
	if t := config.Spec.ServiceAccountTemplate; t != nil {
		template = t.Metadata
	}
	account = &corev1.ServiceAccount{ObjectMeta: metadataOf(revision, template)}
	if template != nil && template.Name != nil {
		// It may be another function's, too.
		account.Name = *template.Name
		account.Labels, account.Annotations = merged(template.Labels), merged(template.Annotations)
		return account, true
	}
	return account, false
}

// serviceOf returns a headless Service of that name for a revision's pods.
func serviceOf(revision *pkgv1.FunctionRevision, name string, config *v1beta1.DeploymentRuntimeConfig) *corev1.Service {
	var template *v1beta1.TemplateMetadata
	if t := config.Spec.ServiceTemplate; t != nil {
		template = t.Metadata
	}
	service := &corev1.Service{
		ObjectMeta: metadataOf(revision, template),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  selectorOf(revision),
			Ports:     []corev1.ServicePort{{Name: portName, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromString(portName)}},
		},
	}
	service.Name = name
	return service
}

// deploymentOf returns the Deployment of a revision, whose pods are replaced when the certificates change: functions read them only
// when they start.
func deploymentOf(revision *pkgv1.FunctionRevision, config *v1beta1.DeploymentRuntimeConfig, account, certificates string) *appsv1.Deployment {
	var template v1beta1.DeploymentTemplate
	if t := config.Spec.DeploymentTemplate; t != nil {
		t.DeepCopyInto(&template)
	}
	d := &appsv1.Deployment{ObjectMeta: metadataOf(revision, template.Metadata)}
	if template.Spec != nil {
		d.Spec = *template.Spec
	}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: selectorOf(revision)}
	completeStrategy(&d.Spec.Strategy)
	if d.Spec.MinReadySeconds == 0 {
		d.Spec.MinReadySeconds = minReady
	}
	pod := &d.Spec.Template
	pod.Labels = merged(revision.Spec.CommonLabels, pod.Labels, labelsOf(revision))
	pod.Annotations = merged(revision.Spec.CommonAnnotations, pod.Annotations, map[string]string{annotationCertificates: certificates})
	completePod(&pod.Spec, revision, account)
	return d
}

// completeStrategy lets no pod go before another has taken its place, unless the configuration says otherwise.
func completeStrategy(s *appsv1.DeploymentStrategy) {
	if s.Type == "" {
		s.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if s.Type == appsv1.RollingUpdateDeploymentStrategyType && s.RollingUpdate == nil {
		s.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1))}
	}
}

func completePod(pod *corev1.PodSpec, revision *pkgv1.FunctionRevision, account string) {
	if pod.ServiceAccountName == "" {
		pod.ServiceAccountName = account
	}
	if pod.TerminationGracePeriodSeconds == nil {
		pod.TerminationGracePeriodSeconds = ptr.To(gracePeriod)
	}
	pod.ImagePullSecrets = withSecrets(pod.ImagePullSecrets, revision.Spec.PackagePullSecrets)
	pod.SecurityContext = podSecurity(pod)
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == certificatesVolume })
	pod.Volumes = append(pod.Volumes, corev1.Volume{
		Name: certificatesVolume,
		VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: ptr.Deref(revision.Spec.TLSServerSecretName, serverSecretName(revision.Name))},
		},
	})
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == containerName })
	if i < 0 {
		pod.Containers = append([]corev1.Container{{Name: containerName}}, pod.Containers...)
		i = 0
	}
	completeContainer(&pod.Containers[i], revision)
}

// withSecrets appends those that are not among them: the API server refuses a name that is there twice.
func withSecrets(secrets, more []corev1.LocalObjectReference) []corev1.LocalObjectReference {
	for _, secret := range more {
		if !slices.Contains(secrets, secret) {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

func completeContainer(c *corev1.Container, revision *pkgv1.FunctionRevision) {
	if c.Image == "" {
		c.Image = revision.Spec.Image
	}
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = ptr.Deref(revision.Spec.PackagePullPolicy, "")
	}
	c.SecurityContext = containerSecurity(c.SecurityContext)
	c.Ports = slices.DeleteFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == portName || p.ContainerPort == port })
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: portName, ContainerPort: port, Protocol: corev1.ProtocolTCP})
	ours := environmentOf(revision)
	c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(ours, func(o corev1.EnvVar) bool { return o.Name == v.Name })
	})
	c.Env = append(ours, c.Env...)
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == certificatesDir })
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: certificatesVolume, MountPath: certificatesDir, ReadOnly: true})
	if c.ReadinessProbe == nil {
		// A function answers gRPC probes only to who shows a certificate, which kubelets don't.
		c.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portName)}},
			PeriodSeconds: 1,
		}
	}
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: stopDelay}}}
	}
}

func environmentOf(revision *pkgv1.FunctionRevision) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "FUNCTION_NAME", Value: functionOwning(revision)},
		{Name: "REVISION_NAME", Value: revision.Name},
		{Name: "REVISION_UID", Value: string(revision.UID)},
		{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
		}},
		{Name: "TLS_SERVER_CERTS_DIR", Value: certificatesDir},
	}
}

// podSecurity fills what the configuration leaves open, but with nothing that contradicts what it says: such a pod would never start.
func podSecurity(pod *corev1.PodSpec) *corev1.PodSecurityContext {
	s := pod.SecurityContext
	if s == nil {
		s = &corev1.PodSecurityContext{}
	}
	if !hasRoot(pod) {
		s.RunAsNonRoot = orElse(s.RunAsNonRoot, true)
	}
	s.RunAsUser = orElse(s.RunAsUser, user)
	s.RunAsGroup = orElse(s.RunAsGroup, user)
	if s.SeccompProfile == nil {
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return s
}

// hasRoot reports whether the configuration lets the pod, or a container of it, run as root.
func hasRoot(pod *corev1.PodSpec) bool {
	if s := pod.SecurityContext; s != nil && isRoot(s.RunAsUser) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
		return c.SecurityContext != nil && isRoot(c.SecurityContext.RunAsUser)
	})
}

func isRoot(user *int64) bool { return user != nil && *user == 0 }

// containerSecurity does the same for a container.
func containerSecurity(s *corev1.SecurityContext) *corev1.SecurityContext {
	if s == nil {
		s = &corev1.SecurityContext{}
	}
	s.Privileged = orElse(s.Privileged, false)
	if !*s.Privileged && !isAdmin(s) {
		s.AllowPrivilegeEscalation = orElse(s.AllowPrivilegeEscalation, false)
	}
	s.ReadOnlyRootFilesystem = orElse(s.ReadOnlyRootFilesystem, true)
	if s.Capabilities == nil {
		s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	return s
}

func isAdmin(s *corev1.SecurityContext) bool {
	return s.Capabilities != nil && slices.ContainsFunc(s.Capabilities.Add, func(c corev1.Capability) bool { return c == "SYS_ADMIN" || c == "CAP_SYS_ADMIN" })
}

func orElse[T any](p *T, otherwise T) *T {
	if p == nil {
		return &otherwise
	}
	return p
}

// metadataOf returns the metadata of an object of the revision.
func metadataOf(revision *pkgv1.FunctionRevision, template *v1beta1.TemplateMetadata) metav1.ObjectMeta {
	if template == nil {
		template = &v1beta1.TemplateMetadata{}
	}
	return metav1.ObjectMeta{
		Name:        revision.Name,
		Labels:      merged(revision.Spec.CommonLabels, template.Labels, labelsOf(revision)),
		Annotations: merged(revision.Spec.CommonAnnotations, template.Annotations),
	}
}

func labelsOf(revision *pkgv1.FunctionRevision) map[string]string {
	return merged(selectorOf(revision), map[string]string{LabelManagedBy: ManagedBy})
}

// selectorOf returns the labels that a revision's pods have, and no others. A Deployment's can't be changed.
func selectorOf(revision *pkgv1.FunctionRevision) map[string]string {
	return map[string]string{labelFunction: functionOwning(revision), labelRevision: revision.Name}
}

// merged returns a new map, in which the later ones win; nil if there is nothing in it.
func merged(all ...map[string]string) map[string]string {
	var out map[string]string
	for _, m := range all {
		if out == nil && len(m) > 0 {
			out = map[string]string{}
		}
		maps.Copy(out, m)
	}
	return out
}
