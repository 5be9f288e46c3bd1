// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Backdate is how long before it is issued a certificate is valid: others'
// clocks differ from ours.
const Backdate = 5 * time.Minute

// serialBits is the size of a serial number, which nobody should be able to
// guess.
const serialBits = 127

// A Pair is a certificate and its private key.
type Pair struct {
	Certificate, Key []byte
}

// An Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	pair        Pair
	certificate *x509.Certificate
	signer      crypto.Signer
}

// Use says what a certificate is for.
type Use = x509.ExtKeyUsage

// A Request says what to issue.
type Request struct {
	Name     string   // the certificate's common name
	DNSNames []string // that a server is reached by
	Use      Use
}

// NewAuthority makes an authority that is valid from now on for the lifetime.
func NewAuthority(name string, now time.Time, lifetime time.Duration) (*Authority, error) {
	template, err := newTemplate(name, now, now.Add(lifetime))
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	pair, err := sign(template, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot make certificate authority %q: %w", name, err)
	}
	return ParseAuthority(pair)
}

// ParseAuthority returns the authority of that certificate and key.
func ParseAuthority(pair Pair) (*Authority, error) {
	certificate, err := parse(pair)
	if err != nil {
		return nil, err
	}
	if !certificate.IsCA {
		return nil, errors.New("the certificate is not an authority's")
	}
	key, err := keyutil.ParsePrivateKeyPEM(pair.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the private key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the private key cannot sign")
	}
	return &Authority{pair: pair, certificate: certificate, signer: signer}, nil
}

// Pair returns the authority's certificate and key. They must not be changed.
func (a *Authority) Pair() Pair { return a.pair }

// Certificate returns the authority's certificate. It must not be changed.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// Issue signs a certificate that is valid from now on for the lifetime, but no
// longer than the authority itself.
func (a *Authority) Issue(r Request, now time.Time, lifetime time.Duration) (Pair, error) {
	end := now.Add(lifetime)
	if end.After(a.certificate.NotAfter) {
		end = a.certificate.NotAfter
	}
	template, err := newTemplate(r.Name, now, end)
	if err != nil {
		return Pair{}, err
	}
	template.DNSNames = r.DNSNames
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{r.Use}
	pair, err := sign(template, a)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot issue a certificate for %q: %w", r.Name, err)
	}
	return pair, nil
}

// Check returns the certificate of the pair, or why it does not do for what is
// requested: it can't be read, one of the authorities would have to have signed
// it, or it is no longer or not yet valid.
func (r Request) Check(pair Pair, authorities []*x509.Certificate, now time.Time) (*x509.Certificate, error) {
	certificate, err := parse(pair)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, authority := range authorities {
		pool.AddCert(authority)
	}
	options := x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{r.Use}}
	if _, err := certificate.Verify(options); err != nil {
		return nil, err
	}
	for _, name := range r.DNSNames {
		if err := certificate.VerifyHostname(name); err != nil {
			return nil, err
		}
	}
	return certificate, nil
}

// Due is when a certificate should be renewed: a third of its life before it
// ends.
func Due(c *x509.Certificate) time.Time {
	return c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3)
}

// Bundle returns the certificates in one text. It fails for none that was
// parsed.
func Bundle(certificates []*x509.Certificate) ([]byte, error) {
	bundle, err := cert.EncodeCertificates(certificates...)
	if err != nil {
		return nil, fmt.Errorf("cannot encode certificates: %w", err)
	}
	return bundle, nil
}

// ParseBundle returns the certificates in a text; none if it can't be read.
func ParseBundle(bundle []byte) []*x509.Certificate {
	certificates, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	return certificates
}

func parse(pair Pair) (*x509.Certificate, error) {
	both, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate and its key: %w", err)
	}
	return both.Leaf, nil
}

func newTemplate(name string, now, end time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("cannot make a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-Backdate),
		NotAfter:     end,
	}, nil
}

// sign makes a key and a certificate for it, by the authority or, without one, by
// the key itself.
func sign(template *x509.Certificate, by *Authority) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	parent, signer := template, crypto.Signer(key)
	if by != nil {
		parent, signer = by.certificate, by.signer
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, err
	}
	encoded, err := cert.EncodeCertificates(certificate)
	if err != nil {
		return Pair{}, err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encoded, Key: private}, nil
}
