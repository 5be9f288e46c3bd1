// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClientSecretName is the Secret with the certificate that we show to functions
// and the authority that theirs must be from.
const ClientSecretName = "crossplane-tls-client"

// Keys of that Secret.
const (
	keyCertificate = corev1.TLSCertKey
	keyPrivate     = corev1.TLSPrivateKeyKey
	keyAuthority   = "ca.crt"
)

func (c *Connections) credentials(at target, a *attempt) credentials.TransportCredentials {
	if at.plain {
		return &watchedCredentials{TransportCredentials: insecure.NewCredentials(), attempt: a}
	}
	return &mutualTLS{
		TransportCredentials: credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13}),
		secret:               c.secretName(),
		reader:               c.config.Reader,
		attempt:              a,
	}
}

// watchedCredentials tell the attempt how the handshake went.
type watchedCredentials struct {
	credentials.TransportCredentials

	attempt *attempt
}

// ClientHandshake notes how it went.
func (w *watchedCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		w.attempt.failed(securing, err)
		return nil, nil, err
	}
	return w.attempt.greet(conn), info, nil
}

// Clone keeps to the same attempt.
func (w *watchedCredentials) Clone() credentials.TransportCredentials {
	return &watchedCredentials{TransportCredentials: w.TransportCredentials.Clone(), attempt: w.attempt}
}

// mutualTLS reads our certificate at each handshake: that gRPC connects again by
// itself must not bring an old one back. The function's name is verified against the host of
// its endpoint.
type mutualTLS struct {
	credentials.TransportCredentials // for all but the handshake

	secret  types.NamespacedName
	reader  client.Reader
	attempt *attempt
}

// ClientHandshake shows the certificate that the Secret holds now.
func (m *mutualTLS) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := m.load(ctx)
	if err != nil {
		m.attempt.failed(securing, err)
		return nil, nil, err
	}
	inner := &watchedCredentials{TransportCredentials: credentials.NewTLS(config), attempt: m.attempt}
	return inner.ClientHandshake(ctx, authority, raw)
}

// Clone keeps to the same attempt.
func (m *mutualTLS) Clone() credentials.TransportCredentials {
	clone := *m
	clone.TransportCredentials = m.TransportCredentials.Clone()
	return &clone
}

func (m *mutualTLS) load(ctx context.Context) (*tls.Config, error) {
	config, err := m.loadSecret(ctx)
	if err != nil {
		return nil, fmt.Errorf("our certificate in Secret %q: %w", m.secret, err)
	}
	return config, nil
}

func (m *mutualTLS) loadSecret(ctx context.Context) (*tls.Config, error) {
	secret := &corev1.Secret{}
	if err := m.reader.Get(ctx, m.secret, secret); err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(secret.Data[keyCertificate], secret.Data[keyPrivate])
	if err != nil {
		return nil, fmt.Errorf("cannot use %s with %s: %w", keyCertificate, keyPrivate, err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(secret.Data[keyAuthority]) {
		return nil, errors.New(keyAuthority + " holds no certificate")
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{certificate},
		RootCAs:      authorities,
	}, nil
}
