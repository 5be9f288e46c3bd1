// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

var (
	start  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	server = Request{Name: "fn", DNSNames: []string{"fn", "fn.ns"}, Use: x509.ExtKeyUsageServerAuth}
)

const (
	hour = time.Hour
	day  = 24 * time.Hour
)

func authority(t *testing.T, lifetime time.Duration) *Authority {
	t.Helper()
	a, err := NewAuthority("functions", start, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *Authority, r Request, lifetime time.Duration) Pair {
	t.Helper()
	pair, err := a.Issue(r, start, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestCheck(t *testing.T) {
	ours, others := authority(t, 30*day), authority(t, 30*day)
	pair := issue(t, ours, server, day)
	another := issue(t, ours, server, day)
	cases := map[string]struct {
		request Request
		pair    Pair
		trusted []*Authority
		after   time.Duration
		wrong   string // part of the error; "" if there is none
	}{
		"Good":                    {request: server, pair: pair, trusted: []*Authority{ours}},
		"GoodForFewerNames":       {request: Request{DNSNames: []string{"fn.ns"}, Use: server.Use}, pair: pair, trusted: []*Authority{ours}},
		"OneOfSeveralAuthorities": {request: server, pair: pair, trusted: []*Authority{others, ours}},
		"OthersClocksAreBehind":   {request: server, pair: pair, trusted: []*Authority{ours}, after: -time.Minute},
		"AnotherAuthority":        {request: server, pair: pair, trusted: []*Authority{others}, wrong: "unknown authority"},
		"NoAuthority":             {request: server, pair: pair, wrong: "unknown authority"},
		"Expired":                 {request: server, pair: pair, trusted: []*Authority{ours}, after: 25 * hour, wrong: "expired"},
		"NotYetValid":             {request: server, pair: pair, trusted: []*Authority{ours}, after: -hour, wrong: "not yet valid"},
		"AnotherName":             {request: Request{DNSNames: []string{"other.ns"}, Use: server.Use}, pair: pair, trusted: []*Authority{ours}, wrong: "other.ns"},
		"AnotherUse":              {request: Request{Use: x509.ExtKeyUsageClientAuth}, pair: pair, trusted: []*Authority{ours}, wrong: "usage"},
		"AnothersKey":             {request: server, pair: Pair{Certificate: pair.Certificate, Key: another.Key}, trusted: []*Authority{ours}, wrong: "does not match"},
		"Nonsense":                {request: server, pair: Pair{Certificate: []byte("x"), Key: pair.Key}, trusted: []*Authority{ours}, wrong: "cannot read"},
		"Nothing":                 {request: server, trusted: []*Authority{ours}, wrong: "cannot read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var trusted []*x509.Certificate
			for _, a := range tc.trusted {
				trusted = append(trusted, a.Certificate())
			}
			_, err := tc.request.Check(tc.pair, trusted, start.Add(tc.after))
			switch {
			case tc.wrong == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
				t.Errorf("got error %v, want %q", err, tc.wrong)
			}
		})
	}
}

func TestACertificateDoesNotOutliveItsAuthority(t *testing.T) {
	a := authority(t, hour)
	certificate, err := server.Check(issue(t, a, server, day), []*x509.Certificate{a.Certificate()}, start)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := certificate.NotAfter, a.Certificate().NotAfter; !got.Equal(want) {
		t.Errorf("it ends at %s, its authority at %s", got, want)
	}
}

func TestAThirdOfItsLifeIsLeftWhenACertificateIsDue(t *testing.T) {
	c := &x509.Certificate{NotBefore: start, NotAfter: start.Add(90 * day)}
	if got, want := Due(c), start.Add(60*day); !got.Equal(want) {
		t.Errorf("it is due at %s, want %s", got, want)
	}
}

func TestAnAuthorityIsReadBack(t *testing.T) {
	a := authority(t, day)
	back, err := ParseAuthority(a.Pair())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Check(issue(t, back, server, hour), []*x509.Certificate{a.Certificate()}, start); err != nil {
		t.Errorf("what it issues then is refused: %v", err)
	}
	if _, err := ParseAuthority(issue(t, a, server, hour)); err == nil {
		t.Error("a server's certificate is taken for an authority")
	}
}

func TestABundleIsReadBack(t *testing.T) {
	a, b := authority(t, day), authority(t, day)
	bundle, err := Bundle([]*x509.Certificate{a.Certificate(), b.Certificate()})
	if err != nil {
		t.Fatal(err)
	}
	got := ParseBundle(bundle)
	if len(got) != 2 || !got[0].Equal(a.Certificate()) || !got[1].Equal(b.Certificate()) {
		t.Errorf("got %d certificates, want both in order", len(got))
	}
	if got := ParseBundle([]byte("nonsense")); got != nil {
		t.Errorf("nonsense has %d certificates", len(got))
	}
}
