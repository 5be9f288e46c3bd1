// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/internal/pki"
)

// +kubebuilder:rbac:groups="",namespace=crosswatch-system,resources=secrets,verbs=get;list;watch;create;update;delete

// Keys of the Secrets. The last two are only in the authority's, while it has a successor.
const (
	keyCertificate          = corev1.TLSCertKey
	keyPrivate              = corev1.TLSPrivateKeyKey
	keyBundle               = "ca.crt"
	keySuccessorCertificate = "next.crt"
	keySuccessorPrivate     = "next.key"
)

// Lifetimes say for how long certificates are valid. Each is renewed when a third of its life is left.
type Lifetimes struct {
	Authority   time.Duration // at least three times that of a certificate
	Certificate time.Duration
	// Succession is for how long a new authority is only trusted, before it signs: all functions have to have started anew with it.
	Succession time.Duration
}

// DefaultLifetimes returns those of production.
func DefaultLifetimes() Lifetimes {
	const day = 24 * time.Hour
	return Lifetimes{Authority: 10 * 365 * day, Certificate: 90 * day, Succession: day}
}

var errNoAuthority = errors.New("is not there yet: it is made in a moment")

// An earlyError says that by this machine's clock the authority is not valid yet.
type earlyError struct{ from time.Time }

func (e *earlyError) Error() string {
	return fmt.Sprintf("the certificate authority in Secret %q is valid from %s on, and the operator's clock is behind that: correct the clock",
		AuthoritySecretName, e.from.UTC().Format(time.RFC3339))
}

// certificates keeps the Secrets with what the authority signed.
//
// They are created and updated, not applied: a key is made anew each time, so that two who write at once must not both succeed, or
// the pods would start once more for nothing.
type certificates struct {
	client    client.Client
	live      client.Reader
	namespace string
	lifetimes Lifetimes
	clock     clock.PassiveClock
}

// A wish says what is wanted of a Secret.
type wish struct {
	name  string
	meta  metav1.ObjectMeta // labels, and who owns it
	owner types.UID         // who has to control it; empty if it is the operator's own
	// data returns what a Secret with that data is to hold, and after what time that has to be asked again.
	data func(have map[string][]byte) (want map[string][]byte, wait time.Duration, err error)
}

// serverSecret returns the Secret that the revision serves with, and after what time its certificate is due.
func (c *certificates) serverSecret(ctx context.Context, revision *pkgv1.FunctionRevision) (*corev1.Secret, time.Duration, error) {
	if err := c.mayKeepOwn(ctx); err != nil {
		return nil, 0, err
	}
	function := functionOwning(revision)
	request := pki.Request{Name: revision.Name, DNSNames: dnsNames(revision.Name, c.namespace), Use: x509.ExtKeyUsageServerAuth}
	if canNameService(function) {
		request.DNSNames = append(request.DNSNames, dnsNames(function, c.namespace)...)
	}
	return c.ensure(ctx, wish{
		name: ptr.Deref(revision.Spec.TLSServerSecretName, serverSecretName(revision.Name)),
		meta: metav1.ObjectMeta{
			Labels:          merged(revision.Spec.CommonLabels, labelsOf(revision)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(revision, revisionKind)},
		},
		owner: revision.UID,
		data:  c.signed(ctx, request),
	})
}

// clientSecret returns the Secret with the operator's own certificate.
func (c *certificates) clientSecret(ctx context.Context) (*corev1.Secret, time.Duration, error) {
	request := pki.Request{Name: ManagedBy, Use: x509.ExtKeyUsageClientAuth}
	return c.ensure(ctx, wish{name: clientSecretName, meta: ownMetadata(), data: c.signed(ctx, request)})
}

// authoritySecret returns the Secret with the authority.
func (c *certificates) authoritySecret(ctx context.Context) (*corev1.Secret, time.Duration, error) {
	return c.ensure(ctx, wish{name: AuthoritySecretName, meta: ownMetadata(), data: func(have map[string][]byte) (map[string][]byte, time.Duration, error) {
		known, err := c.known(ctx, have)
		if err != nil {
			return nil, 0, err
		}
		return c.succeed(have, known)
	}})
}

// mayKeepOwn says why the operator's own Secrets can't be kept, which a server and its caller need: somebody else's is in their place.
// The cache has only those that carry our label.
func (c *certificates) mayKeepOwn(ctx context.Context) error {
	for _, name := range []string{AuthoritySecretName, clientSecretName} {
		for _, reader := range []client.Reader{c.client, c.live} {
			secret, err := c.get(ctx, reader, wish{name: name})
			if err != nil {
				return err
			}
			if secret.ResourceVersion != "" {
				break
			}
		}
	}
	return nil
}

func ownMetadata() metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: map[string]string{LabelManagedBy: ManagedBy}}
}

// ensure brings a Secret to what is wished. The cache, which may be behind, is good enough to see that nothing needs to be done.
func (c *certificates) ensure(ctx context.Context, w wish) (*corev1.Secret, time.Duration, error) {
	for _, reader := range []client.Reader{c.client, c.live} {
		have, err := c.get(ctx, reader, w)
		if err != nil {
			return nil, 0, err
		}
		want, wait, err := w.of(have)
		if err != nil {
			return nil, 0, fmt.Errorf("cannot fill Secret %q in namespace %q: %w", w.name, c.namespace, err)
		}
		switch {
		case have.ResourceVersion != "" && isSame(have, want):
			return have, wait, nil
		case reader == c.live:
			return want, wait, c.write(ctx, want)
		}
	}
	return nil, 0, nil
}

// get returns a Secret without a resource version if there is none.
func (c *certificates) get(ctx context.Context, reader client.Reader, w wish) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: w.name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: w.name}}, nil
	case err != nil:
		return nil, fmt.Errorf("cannot get Secret %q in namespace %q: %w", w.name, c.namespace, err)
	}
	controller := metav1.GetControllerOf(secret)
	switch {
	case w.owner == "" && secret.Labels[LabelManagedBy] != ManagedBy:
		return nil, fmt.Errorf("cannot use Secret %q in namespace %q, which is there already and is not this operator's: delete it, "+
			"or, if somebody else runs functions, start the operator with --function-runtime=External", w.name, c.namespace)
	case w.owner != "" && (controller == nil || controller.UID != w.owner):
		return nil, fmt.Errorf("cannot use Secret %q in namespace %q, which is there already and is not this revision's: delete it", w.name, c.namespace)
	}
	return secret, nil
}

func (w wish) of(have *corev1.Secret) (*corev1.Secret, time.Duration, error) {
	want := have.DeepCopy()
	for key, value := range w.meta.Labels {
		metav1.SetMetaDataLabel(&want.ObjectMeta, key, value)
	}
	if want.ResourceVersion == "" {
		want.OwnerReferences = w.meta.OwnerReferences
		want.Type = corev1.SecretTypeTLS
	}
	data, wait, err := w.data(have.Data)
	want.Data = data
	return want, wait, err
}

func isSame(a, b *corev1.Secret) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.EqualFunc(a.Data, b.Data, bytes.Equal)
}

func (c *certificates) write(ctx context.Context, secret *corev1.Secret) error {
	var err error
	if secret.ResourceVersion == "" {
		err = c.client.Create(ctx, secret)
	} else {
		err = c.client.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("cannot write Secret %q in namespace %q: %w", secret.Name, secret.Namespace, err)
	}
	return nil
}

// signed wishes for a certificate as requested, signed by an authority that is trusted, and for all authorities to trust.
func (c *certificates) signed(ctx context.Context, request pki.Request) func(map[string][]byte) (map[string][]byte, time.Duration, error) {
	return func(have map[string][]byte) (map[string][]byte, time.Duration, error) {
		authority, bundle, err := c.authority(ctx)
		if err != nil {
			return nil, 0, err
		}
		now := c.clock.Now()
		pair := pki.Pair{Certificate: have[keyCertificate], Key: have[keyPrivate]}
		certificate, err := request.Check(pair, pki.ParseBundle(bundle), now)
		if err != nil || !now.Before(pki.Due(certificate)) {
			if pair, err = authority.Issue(request, now, c.lifetimes.Certificate); err != nil {
				return nil, 0, err
			}
			if certificate, err = request.Check(pair, pki.ParseBundle(bundle), now); err != nil {
				return nil, 0, fmt.Errorf("the bundle in Secret %q lacks its own authority: %w", AuthoritySecretName, err)
			}
		}
		data := map[string][]byte{keyCertificate: pair.Certificate, keyPrivate: pair.Key, keyBundle: bundle}
		return data, pki.Due(certificate).Sub(now), nil
	}
}

// authority returns the one that signs, and all that are to be trusted.
func (c *certificates) authority(ctx context.Context) (*pki.Authority, []byte, error) {
	secret := &corev1.Secret{}
	err := c.client.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: AuthoritySecretName}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("cannot get Secret %q: %w", AuthoritySecretName, err)
	}
	authority, err := pki.ParseAuthority(pki.Pair{Certificate: secret.Data[keyCertificate], Key: secret.Data[keyPrivate]})
	if err != nil || !c.clock.Now().Before(authority.Certificate().NotAfter) {
		return nil, nil, fmt.Errorf("the certificate authority in Secret %q %w", AuthoritySecretName, errNoAuthority)
	}
	if from := authority.Certificate().NotBefore; c.clock.Now().Before(from) {
		return nil, nil, &earlyError{from: from}
	}
	return authority, secret.Data[keyBundle], nil
}

// hashOf returns the hash of what of a Secret a function has to be started anew for. A key never changes alone.
func hashOf(secret *corev1.Secret) string {
	sum := sha256.New()
	sum.Write(secret.Data[keyCertificate])
	sum.Write(secret.Data[keyBundle])
	return hex.EncodeToString(sum.Sum(nil))
}
