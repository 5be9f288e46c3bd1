// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
)

// A target is where and how a function is called.
type target struct {
	endpoint string // a gRPC target
	plain    bool   // without TLS

	// version of what answers there. Another may have the same address: it is
	// connected to anew.
	version string

	// certificate is the version of the Secret with ours, empty if there is none
	// or none is needed. A connection lasts no longer: one that was made with a
	// certificate which somebody replaced, since it expires or is known to others,
	// would be used until the function restarts.
	certificate string
}

// find where the function is called now.
func (c *Connections) find(ctx context.Context, function string) (target, error) {
	fn := &pkgv1.Function{}
	err := c.config.Reader.Get(ctx, types.NamespacedName{Name: function}, fn)
	if apierrors.IsNotFound(err) {
		return target{}, errors.New("no Function of that name is installed")
	}
	if err != nil {
		return target{}, fmt.Errorf("cannot get the Function: %w", err)
	}

	development := developmentTarget(fn)
	if development != "" && c.config.AllowDevelopment {
		return target{endpoint: development, plain: true}, nil
	}

	active, err := activeRevision(ctx, c.config.Reader, function)
	switch {
	case err != nil:
		return target{}, err
	case active == nil && development != "":
		return target{}, errors.New("it is annotated to run on a development server; start the operator with --allow-development-functions to call it there")
	case active == nil:
		return target{}, errors.New("it has no active FunctionRevision")
	case active.Status.Endpoint == "":
		return target{}, fmt.Errorf("its FunctionRevision %q has no endpoint yet", active.Name)
	}
	return target{endpoint: active.Status.Endpoint, version: string(active.UID), certificate: c.certificate(ctx)}, nil
}

// certificate returns the version of the Secret with our certificate. If it can't
// be read, the handshake says why.
func (c *Connections) certificate(ctx context.Context) string {
	secret := &corev1.Secret{}
	if err := c.config.Reader.Get(ctx, c.secretName(), secret); err != nil {
		return ""
	}
	return secret.ResourceVersion
}

func (c *Connections) secretName() types.NamespacedName {
	return types.NamespacedName{Namespace: c.config.Namespace, Name: ClientSecretName}
}

// activeRevision of the function: the one in force; nil if there is none. It may
// be shared with the reader: it is for reading only.
func activeRevision(ctx context.Context, reader client.Reader, function string) (*pkgv1.FunctionRevision, error) {
	list := &pkgv1.FunctionRevisionList{}
	if err := reader.List(ctx, list, client.MatchingLabels{pkgv1.LabelParentPackage: function}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list its FunctionRevisions: %w", err)
	}
	return InForce(list.Items), nil
}

// InForce returns which of a function's revisions is called; nil if none is
// active. While one revision takes over from another both are active: the newest
// that has an endpoint counts, so that the older goes on until the newer can
// take over. If none has one, it is the newest.
func InForce(revisions []pkgv1.FunctionRevision) *pkgv1.FunctionRevision {
	var newest *pkgv1.FunctionRevision
	for i := range revisions {
		rev := &revisions[i]
		if rev.Spec.DesiredState == pkgv1.RevisionActive && (newest == nil || isPreferred(rev, newest)) {
			newest = rev
		}
	}
	return newest
}

func isPreferred(a, b *pkgv1.FunctionRevision) bool {
	if aServes, bServes := a.Status.Endpoint != "", b.Status.Endpoint != ""; aServes != bServes {
		return aServes
	}
	return a.Spec.Revision > b.Spec.Revision
}

func developmentTarget(fn *pkgv1.Function) string {
	if fn.Annotations[pkgv1.AnnotationRuntime] != pkgv1.RuntimeDevelopment {
		return ""
	}
	return fn.Annotations[pkgv1.AnnotationRuntimeDevelopmentTarget]
}
