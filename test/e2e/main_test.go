// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	pkgv1beta1 "github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
	"github.com/crosswatch-io/crosswatch/test/functions/certificates"
)

const (
	operatorNamespace      = "crosswatch-system"
	operatorServiceAccount = "crosswatch"
	clientSecret           = "crossplane-tls-client"
	functionHost           = "localhost"
)

// installation is the cluster that all tests of the package share.
type installation struct {
	controlPlane *controlplane.ControlPlane
	auditLog     controlplane.AuditLog
	scheme       *runtime.Scheme
	admin        client.WithWatch
	function     certificates.Bundle // what functions serve with
	refusals     expectedRefusals
	shared       sets.Set[string]       // the XR kinds that tests share, as far as there were tests that do
	binary       func() (string, error) // builds the operator when it is first called
}

var cluster *installation

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// The operator logs by itself; what controller-runtime says besides is noise.
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "crosswatch-e2e-")
	if err != nil {
		return complain(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx := context.Background()
	auditLog := controlplane.AuditLog{Path: filepath.Join(dir, "audit.log")}
	cp, err := controlplane.Start(ctx, controlplane.Config{
		AuditLog: auditLog.Path, ControllerManager: true,
		// By default, it deletes the objects of a collection one after the other.
		APIServerFlags: map[string][]string{"delete-collection-workers": {"8"}},
	})
	if err != nil {
		return complain(err)
	}
	defer func() {
		if err := cp.Stop(); err != nil {
			complain(err)
		}
	}()
	cluster, err = install(ctx, cp, auditLog)
	if err != nil {
		return complain(err)
	}
	cluster.binary = sync.OnceValues(func() (string, error) { return buildOperator(ctx, dir) })
	code := m.Run()
	refused, err := cluster.unexpectedRefusals()
	if err != nil {
		return complain(err)
	}
	for _, request := range refused {
		code = complain(fmt.Errorf("the operator was forbidden what it does by itself: %s", request))
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// install does what a user does, with the manifests that a user has.
func install(ctx context.Context, cp *controlplane.ControlPlane, auditLog controlplane.AuditLog) (*installation, error) {
	for _, dir := range []string{"../../config/default", "manifests"} {
		if err := cp.ApplyKustomize(ctx, dir); err != nil {
			return nil, err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1.AddToScheme, apiextensionsv1.AddToScheme, pkgv1.AddToScheme, pkgv1beta1.AddToScheme, watchv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	admin, err := client.NewWithWatch(cp.AdminConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	i := &installation{controlPlane: cp, auditLog: auditLog, scheme: scheme, admin: admin, shared: sets.New[string]()}
	return i, i.trust(ctx)
}

// trust makes the certificates of both ends, as the package manager would.
func (i *installation) trust(ctx context.Context) error {
	authority, err := certificates.NewAuthority("functions")
	if err != nil {
		return err
	}
	i.function, err = authority.Issue(certificates.Request{Name: "function", DNSNames: []string{functionHost}})
	if err != nil {
		return err
	}
	operator, err := authority.Issue(certificates.Request{Name: "crosswatch"})
	if err != nil {
		return err
	}
	return i.admin.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: clientSecret},
		Type:       corev1.SecretTypeTLS,
		Data:       operator.SecretData(),
	})
}
