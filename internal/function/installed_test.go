// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

const testNamespace = "crosswatch-system"

// installed stands in for the manager's cache: the functions that a test
// installed, and the Secret with our certificate.
type installed struct {
	mu        sync.Mutex // guards what follows
	functions map[string]*pkgv1.Function
	revisions map[string]*pkgv1.FunctionRevision
	secret    *corev1.Secret
	versions  int // of the Secret
}

func newInstalled() *installed {
	return &installed{functions: map[string]*pkgv1.Function{}, revisions: map[string]*pkgv1.FunctionRevision{}}
}

// development installs a function that runs on a plain-text server.
func (i *installed) development(name, address string) {
	i.add(name, map[string]string{
		pkgv1.AnnotationRuntime:                  pkgv1.RuntimeDevelopment,
		pkgv1.AnnotationRuntimeDevelopmentTarget: address,
	})
}

func (i *installed) add(name string, annotations map[string]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.functions[name] = &pkgv1.Function{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
}

// revise the function: its newest revision is in force, and has this endpoint.
func (i *installed) revise(name string, revision int64, endpoint string) {
	i.add(name, nil)
	i.mu.Lock()
	defer i.mu.Unlock()
	rev := &pkgv1.FunctionRevision{ObjectMeta: metav1.ObjectMeta{
		Name:   fmt.Sprintf("%s-%d", name, revision),
		Labels: map[string]string{pkgv1.LabelParentPackage: name},
	}}
	rev.Spec.DesiredState = pkgv1.RevisionActive
	rev.Spec.Revision = revision
	rev.Status.Endpoint = endpoint
	i.revisions[rev.Name] = rev
}

func (i *installed) setSecret(data map[string][]byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions++
	i.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(i.versions)}, Data: data}
}

func (i *installed) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch obj := obj.(type) {
	case *pkgv1.Function:
		fn, ok := i.functions[key.Name]
		if !ok {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "functions"}, key.Name)
		}
		*obj = *fn
	case *corev1.Secret:
		if i.secret == nil || key.Namespace != testNamespace || key.Name != ClientSecretName {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
		}
		*obj = *i.secret
	default:
		return fmt.Errorf("unexpected %T", obj)
	}
	return nil
}

func (i *installed) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	revisions, ok := list.(*pkgv1.FunctionRevisionList)
	if !ok {
		return fmt.Errorf("unexpected %T", list)
	}
	for _, rev := range i.revisions {
		if options.LabelSelector.Matches(labelSet(rev.Labels)) {
			revisions.Items = append(revisions.Items, *rev)
		}
	}
	return nil
}

type labelSet map[string]string

func (l labelSet) Has(key string) bool              { _, ok := l[key]; return ok }
func (l labelSet) Get(key string) string            { return l[key] }
func (l labelSet) Lookup(key string) (string, bool) { v, ok := l[key]; return v, ok }

// connect to the functions that are installed, until the test ends.
func connect(t testing.TB, i *installed, change func(*ConnectionsConfig)) *Connections {
	t.Helper()
	config := ConnectionsConfig{Reader: i, Namespace: testNamespace, AllowDevelopment: true}
	if change != nil {
		change(&config)
	}
	c, err := NewConnections(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
