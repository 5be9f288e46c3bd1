// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/certificates"
	"github.com/crosswatch-io/crosswatch/test/installation"
	"github.com/crosswatch-io/crosswatch/test/nameserver"
)

// kubelet stands in for what runs the Deployments of functions: it serves the
// image that a Deployment names, with the certificates of the Secret that it
// mounts, makes the name of its Service lead there, and says so in its status.
type kubelet struct {
	w     *world
	names *nameserver.Server

	mu     sync.Mutex                   // guards what follows; not held while anything is served or written
	images map[string]functions.Handler // an image that is not among them never starts
	served map[string]*functions.Server // by image, the newest
	pods   map[string]pod               // by Deployment
	last   int                          // number of the last pod
}

type pod struct {
	generation int64
	server     *functions.Server
}

// runFunctions runs functions of these images as Deployments until the test ends.
func runFunctions(w *world, images map[string]functions.Handler) *kubelet {
	w.t.Helper()
	k := &kubelet{
		w: w, names: nameserver.Start(w.t), images: images,
		served: map[string]*functions.Server{}, pods: map[string]pod{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	changes, err := w.admin.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(installation.Namespace))
	w.must(err)
	var running sync.WaitGroup
	running.Go(func() {
		for change := range changes.ResultChan() {
			d, ok := change.Object.(*appsv1.Deployment)
			// Those of earlier tests may not be collected yet.
			if ok && strings.HasSuffix(d.Labels["pkg.crossplane.io/function"], w.namespace) {
				k.follow(ctx, change.Type, d)
			}
		}
	})
	w.t.Cleanup(func() {
		changes.Stop()
		cancel()
		running.Wait()
		for _, server := range k.all() {
			server.Stop()
		}
	})
	return k
}

// server returns what serves the image; nil if nothing does.
func (k *kubelet) server(image string) *functions.Server {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.served[image]
}

func (k *kubelet) all() []*functions.Server {
	k.mu.Lock()
	defer k.mu.Unlock()
	var servers []*functions.Server
	for _, p := range k.pods {
		servers = append(servers, p.server)
	}
	return servers
}

func (k *kubelet) follow(ctx context.Context, change watch.EventType, d *appsv1.Deployment) {
	image := d.Spec.Template.Spec.Containers[0].Image
	k.mu.Lock()
	handler, known := k.images[image]
	before := k.pods[d.Name]
	k.mu.Unlock()
	switch {
	case change == watch.Deleted:
		k.names.Set(d.Name + "." + d.Namespace)
		k.put(d.Name, image, pod{})
	case known && before.generation != d.Generation:
		p, err := k.start(ctx, d, handler)
		if err == nil {
			k.put(d.Name, image, p)
			err = k.report(ctx, d)
		}
		if err != nil && ctx.Err() == nil {
			k.w.t.Errorf("cannot run Deployment %q: %v", d.Name, err)
		}
	default:
		return
	}
	if before.server != nil {
		before.server.Stop()
	}
}

func (k *kubelet) put(deployment, image string, p pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods[deployment], k.served[image] = p, p.server
	if p.server == nil {
		delete(k.pods, deployment)
		delete(k.served, image)
	}
}

// start serves at an address of its own, as each pod has one.
func (k *kubelet) start(ctx context.Context, d *appsv1.Deployment, handler functions.Handler) (pod, error) {
	secret := &corev1.Secret{}
	mounted := d.Spec.Template.Spec.Volumes[0].Secret.SecretName
	if err := k.w.admin.Get(ctx, types.NamespacedName{Namespace: d.Namespace, Name: mounted}, secret); err != nil {
		return pod{}, err
	}
	secure, err := certificates.Bundle{
		Certificate: secret.Data[certificates.FileCertificate],
		Key:         secret.Data[certificates.FileKey],
		Authority:   secret.Data[certificates.FileAuthority],
	}.ServerConfig()
	if err != nil {
		return pod{}, err
	}
	k.mu.Lock()
	k.last++
	ip := fmt.Sprintf("127.0.9.%d", k.last)
	k.mu.Unlock()
	server, err := functions.Start(handler, functions.Options{TLS: secure, Address: ip + ":9443"})
	if err != nil {
		return pod{}, err
	}
	k.names.Set(d.Name+"."+d.Namespace, ip)
	return pod{generation: d.Generation, server: server}, nil
}

func (k *kubelet) report(ctx context.Context, d *appsv1.Deployment) error {
	before := d.DeepCopy()
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"}},
	}
	return client.IgnoreNotFound(k.w.admin.Status().Patch(ctx, d, client.MergeFrom(before)))
}

// keepClientSecret lets a test's operator make the certificates of functions, and
// puts those that the other tests use back after it. It has to come before the
// test's world.
func keepClientSecret(t *testing.T) {
	t.Helper()
	admin := cluster.Admin
	secret := &corev1.Secret{}
	if err := admin.Get(t.Context(), types.NamespacedName{Namespace: installation.Namespace, Name: installation.ClientSecret}, secret); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range []string{installation.ClientSecret, authoritySecret} {
			made := &corev1.Secret{}
			made.Namespace, made.Name = installation.Namespace, name
			if err := client.IgnoreNotFound(admin.Delete(cleanupContext(t), made)); err != nil {
				t.Error(err)
			}
		}
		secret.ResourceVersion, secret.UID = "", ""
		if err := admin.Create(cleanupContext(t), secret); err != nil {
			t.Error(err)
		}
	})
}
