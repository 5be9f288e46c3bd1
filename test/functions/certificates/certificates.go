// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package certificates makes certificate authorities and what they sign, for
// tests of connections with mutual TLS.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Names of the files, and of the keys of a Secret, that a bundle is kept in.
const (
	FileCertificate = "tls.crt"
	FileKey         = "tls.key"
	FileAuthority   = "ca.crt"
)

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// Bundle is a certificate with its key, and the authority that signed it, all in
// PEM. It serves either end of a connection: the authority is what the peer's
// certificate is checked against.
type Bundle struct {
	Certificate, Key, Authority []byte
}

// Request says what to sign.
type Request struct {
	// Name is the certificate's common name.
	Name string
	// DNSNames that a server is reached by; none for a client.
	DNSNames []string
	// NotBefore and NotAfter bound the validity. Zero values make it a day,
	// from a minute ago.
	NotBefore, NotAfter time.Time
}

// NewAuthority makes an authority that is valid for two days.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for authority %q: %w", name, err)
	}
	template, err := newTemplate(name, time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour))
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority %q: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse authority %q: %w", name, err)
	}
	return &Authority{certificate: certificate, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// Issue signs a certificate that is good for servers and for clients.
func (a *Authority) Issue(r Request) (Bundle, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Bundle{}, fmt.Errorf("make a key for %q: %w", r.Name, err)
	}
	if r.NotBefore.IsZero() {
		r.NotBefore = time.Now().Add(-time.Minute)
	}
	if r.NotAfter.IsZero() {
		r.NotAfter = r.NotBefore.Add(24 * time.Hour)
	}
	template, err := newTemplate(r.Name, r.NotBefore, r.NotAfter)
	if err != nil {
		return Bundle{}, err
	}
	template.DNSNames = r.DNSNames
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Bundle{}, fmt.Errorf("sign %q: %w", r.Name, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Bundle{}, fmt.Errorf("encode the key of %q: %w", r.Name, err)
	}
	return Bundle{Certificate: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", private), Authority: a.pem}, nil
}

// ServerConfig makes a server that shows the certificate and accepts only
// clients whose own is signed by the same authority.
func (b Bundle) ServerConfig() (*tls.Config, error) {
	certificate, peers, err := b.parse()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{certificate},
		ClientCAs:    peers,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}

// ClientConfig makes a client that shows the certificate and accepts only
// servers whose own is valid for the name and signed by the same authority.
func (b Bundle) ClientConfig(serverName string) (*tls.Config, error) {
	certificate, peers, err := b.parse()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{certificate},
		RootCAs:      peers,
		ServerName:   serverName,
	}, nil
}

// SecretData is the bundle as the data of a Secret of type kubernetes.io/tls.
func (b Bundle) SecretData() map[string][]byte {
	return map[string][]byte{FileCertificate: b.Certificate, FileKey: b.Key, FileAuthority: b.Authority}
}

// WriteDir writes the bundle's files to a folder that exists.
func (b Bundle) WriteDir(dir string) error {
	for name, data := range b.SecretData() {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("write certificates: %w", err)
		}
	}
	return nil
}

// parse returns the certificate, and the authority as a pool of one.
func (b Bundle) parse() (tls.Certificate, *x509.CertPool, error) {
	certificate, err := tls.X509KeyPair(b.Certificate, b.Key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("parse certificate: %w", err)
	}
	peers := x509.NewCertPool()
	if !peers.AppendCertsFromPEM(b.Authority) {
		return tls.Certificate{}, nil, errors.New("parse authority: no certificate in it")
	}
	return certificate, peers, nil
}

// newTemplate is what all certificates have in common.
func newTemplate(name string, notBefore, notAfter time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number for %q: %w", name, err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    notBefore,
		NotAfter:     notAfter,
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
