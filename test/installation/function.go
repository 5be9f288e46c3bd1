// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/test/functions"
)

// Serve serves a function in the way that the operator trusts. The caller stops it.
func (i *Installation) Serve(handler functions.Handler) (*functions.Server, error) {
	secure, err := i.FunctionTLS()
	if err != nil {
		return nil, err
	}
	return functions.Start(handler, functions.Options{TLS: secure})
}

// FunctionTLS is how a function has to be served that the operator trusts.
func (i *Installation) FunctionTLS() (*tls.Config, error) {
	return i.function.ServerConfig()
}

// Announce makes a function known that is served at host:port, as the package
// manager would: as an active revision with that endpoint. It returns what it
// created, even if it fails.
func (i *Installation) Announce(ctx context.Context, name, target string) ([]client.Object, error) {
	image := "registry.example.org/" + name + ":v1"
	function := &pkgv1.Function{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pkgv1.FunctionSpec{Package: image}}
	revision := &pkgv1.FunctionRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-1", Labels: map[string]string{pkgv1.LabelParentPackage: name}},
		Spec:       pkgv1.FunctionRevisionSpec{DesiredState: pkgv1.RevisionActive, Image: image, Revision: 1},
	}
	_, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("cannot announce function %s: %w", name, err)
	}
	var created []client.Object
	for _, obj := range []client.Object{function, revision} {
		if err := i.Admin.Create(ctx, obj); err != nil {
			return created, err
		}
		created = append(created, obj)
	}
	revision.Status.Endpoint = "dns:///" + net.JoinHostPort(FunctionHost, port)
	return created, i.Admin.Status().Update(ctx, revision)
}
