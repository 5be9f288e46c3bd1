// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/internal/function"
	"github.com/crosswatch-io/crosswatch/internal/pki"
)

const (
	clientSecretName = function.ClientSecretName
	authorityName    = "crosswatch functions"
)

// trustee keeps the authority and the operator's own certificate, as long as there are Functions.
type trustee struct {
	client       client.Client
	certificates *certificates
}

func (r *trustee) setUp(mgr ctrl.Manager) error {
	one := options()
	one.MaxConcurrentReconciles = 1
	return ctrl.NewControllerManagedBy(mgr).
		Named("function-trust").
		Watches(&pkgv1.Function{}, handler.EnqueueRequestsFromMapFunc(theOnlyRequest)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, secret client.Object) []reconcile.Request {
			if name := secret.GetName(); name != AuthoritySecretName && name != clientSecretName {
				return nil
			}
			return theOnlyRequest(ctx, secret)
		})).
		WithOptions(one).
		Complete(r)
}

// theOnlyRequest stands for the whole of what the trustee keeps.
func theOnlyRequest(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: AuthoritySecretName}}}
}

// Reconcile sees to it that the authority and the operator's own certificate are there and valid.
func (r *trustee) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	functions := &pkgv1.FunctionList{}
	if err := r.client.List(ctx, functions); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list Functions: %w", err)
	}
	if len(functions.Items) == 0 {
		return reconcile.Result{}, nil
	}
	_, untilAuthority, err := r.certificates.authoritySecret(ctx)
	if err != nil {
		return reconcile.Result{}, unlessOutdated(err)
	}
	// What was just written is not in the cache yet; it comes as an event.
	_, untilClient, err := r.certificates.clientSecret(ctx)
	var early *earlyError
	switch {
	case errors.As(err, &early):
		untilClient = early.from.Sub(r.certificates.clock.Now())
	case err != nil && !errors.Is(err, errNoAuthority):
		return reconcile.Result{}, unlessOutdated(err)
	}
	return reconcile.Result{RequeueAfter: sooner(untilAuthority, untilClient)}, nil
}

// succeed wishes for an authority. One that ends within a third of its life gets a successor, which is trusted at once, and signs
// once all functions have had time to start anew with it. Since what the old one signed stays valid for as long, it is trusted
// until it ends. Those that are known are trusted, too.
func (c *certificates) succeed(have map[string][]byte, known []*x509.Certificate) (map[string][]byte, time.Duration, error) {
	now := c.clock.Now()
	signs := authorityIn(have, keyCertificate, keyPrivate, now)
	next := authorityIn(have, keySuccessorCertificate, keySuccessorPrivate, now)
	var err error
	switch {
	case signs == nil && next != nil:
		signs, next = next, nil
	case signs == nil:
		signs, err = c.newAuthority(now)
	case next == nil && !now.Before(pki.Due(signs.Certificate())):
		next, err = c.newAuthority(now)
	case next != nil && !now.Before(c.ascends(next)):
		signs, next = next, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return c.authorities(signs, next, known, now)
}

// known returns which authorities have been trusted so far. If their Secret was deleted, the operator's own Secret still has them:
// functions go on with what these signed, and trust no other authority until they have started anew.
func (c *certificates) known(ctx context.Context, have map[string][]byte) ([]*x509.Certificate, error) {
	if known := pki.ParseBundle(have[keyBundle]); len(known) > 0 {
		return known, nil
	}
	secret, err := c.get(ctx, c.client, wish{name: clientSecretName})
	if err != nil {
		return nil, err
	}
	return pki.ParseBundle(secret.Data[keyBundle]), nil
}

func (c *certificates) newAuthority(now time.Time) (*pki.Authority, error) {
	return pki.NewAuthority(authorityName, now, c.lifetimes.Authority)
}

// ascends returns when a successor begins to sign.
func (c *certificates) ascends(next *pki.Authority) time.Time {
	return next.Certificate().NotBefore.Add(pki.Backdate + c.lifetimes.Succession)
}

// authorities returns the data of the authority's Secret, and after what time it has to change.
func (c *certificates) authorities(
	signs, next *pki.Authority, known []*x509.Certificate, now time.Time,
) (map[string][]byte, time.Duration, error) {
	data := map[string][]byte{keyCertificate: signs.Pair().Certificate, keyPrivate: signs.Pair().Key}
	trusted := []*x509.Certificate{signs.Certificate()}
	changes := pki.Due(signs.Certificate())
	if next != nil {
		data[keySuccessorCertificate], data[keySuccessorPrivate] = next.Pair().Certificate, next.Pair().Key
		trusted = append(trusted, next.Certificate())
		changes = c.ascends(next)
	}
	for _, certificate := range known {
		if now.Before(certificate.NotAfter) && !slices.ContainsFunc(trusted, certificate.Equal) {
			trusted = append(trusted, certificate)
		}
	}
	for _, certificate := range trusted {
		if certificate.NotAfter.Before(changes) {
			changes = certificate.NotAfter
		}
	}
	bundle, err := pki.Bundle(trusted)
	data[keyBundle] = bundle
	return data, changes.Sub(now), err
}

// authorityIn returns the authority at these keys; nil if there is none that can be used.
func authorityIn(data map[string][]byte, certificate, key string, now time.Time) *pki.Authority {
	authority, err := pki.ParseAuthority(pki.Pair{Certificate: data[certificate], Key: data[key]})
	if err != nil || !now.Before(authority.Certificate().NotAfter) {
		return nil
	}
	return authority
}
