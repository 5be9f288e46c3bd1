// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	pkgv1beta1 "github.com/crosswatch-io/crosswatch/api/pkg/v1beta1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
	"github.com/crosswatch-io/crosswatch/test/functions/certificates"
)

const (
	// Namespace is where the operator is installed.
	Namespace = "crosswatch-system"
	// ServiceAccount is the operator's, in that namespace.
	ServiceAccount = "crosswatch"
	// ClientSecret is the Secret, in that namespace, with what the operator shows to
	// functions and trusts of them.
	ClientSecret = "crossplane-tls-client"
	// FunctionHost is the name at which functions are announced, for which their
	// certificates are.
	FunctionHost = "localhost"
)

// Installation is what the kustomizations made of a control plane. It is safe for
// concurrent use.
type Installation struct {
	Plane  *controlplane.ControlPlane
	Scheme *runtime.Scheme  // has what the operator speaks of
	Admin  client.WithWatch // may do everything

	function certificates.Bundle // what functions serve with
}

// Install applies the kustomizations in these folders, one after the other, and
// makes the certificates with which operator and functions trust each other, as the
// package manager would.
func Install(ctx context.Context, plane *controlplane.ControlPlane, kustomizations ...string) (*Installation, error) {
	for _, dir := range kustomizations {
		if err := plane.ApplyKustomize(ctx, dir); err != nil {
			return nil, err
		}
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	admin, err := client.NewWithWatch(plane.AdminConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make the admin's client: %w", err)
	}
	i := &Installation{Plane: plane, Scheme: scheme, Admin: admin}
	return i, i.trust(ctx)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1.AddToScheme, pkgv1.AddToScheme, pkgv1beta1.AddToScheme, watchv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot make a scheme: %w", err)
		}
	}
	return scheme, nil
}

func (i *Installation) trust(ctx context.Context) error {
	authority, err := certificates.NewAuthority("functions")
	if err != nil {
		return err
	}
	i.function, err = authority.Issue(certificates.Request{Name: "function", DNSNames: []string{FunctionHost}})
	if err != nil {
		return err
	}
	operator, err := authority.Issue(certificates.Request{Name: "crosswatch"})
	if err != nil {
		return err
	}
	return i.Admin.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ClientSecret},
		Type:       corev1.SecretTypeTLS,
		Data:       operator.SecretData(),
	})
}

// OperatorConfig is the configuration of the operator's ServiceAccount.
func (i *Installation) OperatorConfig(ctx context.Context) (*rest.Config, error) {
	return i.Plane.ServiceAccountConfig(ctx, Namespace, ServiceAccount)
}
