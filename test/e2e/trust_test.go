// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/certificates"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

// identity is what a function's server shows and trusts, which can be replaced
// while it serves. It remembers whom it let in last.
type identity struct {
	mu     sync.Mutex // guards what follows
	bundle certificates.Bundle
	peer   []byte // of the last handshake
}

func (i *identity) use(b certificates.Bundle) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bundle = b
}

// sees tells whether the last connection was made with that certificate.
func (i *identity) sees(b certificates.Bundle) (bool, string) {
	block, _ := pem.Decode(b.Certificate)
	i.mu.Lock()
	defer i.mu.Unlock()
	return bytes.Equal(i.peer, block.Bytes), fmt.Sprintf("%d bytes of a certificate", len(i.peer))
}

func (i *identity) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			i.mu.Lock()
			defer i.mu.Unlock()
			config, err := i.bundle.ServerConfig()
			if err != nil {
				return nil, err
			}
			config.NextProtos = []string{"h2"}
			config.VerifyConnection = i.remember
			return config, nil
		},
	}
}

func (i *identity) remember(state tls.ConnectionState) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.peer = slices.Clone(state.PeerCertificates[0].Raw)
	return nil
}

// trusted serves a function with an identity of its own, and returns both.
func (w *world) trusted(name string, b certificates.Bundle) (*functions.Server, *identity) {
	w.t.Helper()
	i := &identity{bundle: b}
	server := functions.Serve(w.t, reader, functions.Options{TLS: i.config()})
	w.announce(name, server.Target())
	return server, i
}

// presents makes the operator show and trust what the bundle holds until the test
// ends.
func (w *world) presents(b certificates.Bundle) {
	w.t.Helper()
	w.replaceClientSecret(b.SecretData())
}

func (w *world) replaceClientSecret(data map[string][]byte) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: installation.Namespace, Name: installation.ClientSecret}}
	update(w, secret, func(s *corev1.Secret) { s.Data = data })
}

// restoresTrust puts back what the operator shows and trusts when the test ends.
func (w *world) restoresTrust() {
	w.t.Helper()
	secret := w.clientSecretData()
	w.t.Cleanup(func() {
		live := &corev1.Secret{}
		ctx := cleanupContext(w.t)
		at := metav1.ObjectMeta{Namespace: installation.Namespace, Name: installation.ClientSecret}
		w.must(w.admin.Get(ctx, key(&corev1.Secret{ObjectMeta: at}), live))
		live.Data = secret
		w.must(w.admin.Update(ctx, live))
	})
}

func (w *world) clientSecretData() map[string][]byte {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: installation.Namespace, Name: installation.ClientSecret}}
	w.must(w.admin.Get(w.t.Context(), key(secret), secret))
	return secret.Data
}

func (w *world) authority(name string) *certificates.Authority {
	w.t.Helper()
	a, err := certificates.NewAuthority(name)
	w.must(err)
	return a
}

func (w *world) issue(a *certificates.Authority, until time.Time) certificates.Bundle {
	w.t.Helper()
	b, err := a.Issue(certificates.Request{
		Name: "e2e", DNSNames: []string{installation.FunctionHost}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
	})
	w.must(err)
	return b
}

// trusting is the bundle, but with these authorities to check the other side by.
func trusting(b certificates.Bundle, authorities ...certificates.Bundle) certificates.Bundle {
	b.Authority = nil
	for _, a := range authorities {
		b.Authority = append(b.Authority, a.Authority...)
	}
	return b
}

func TestACertificateThatIsNotTrustedIsNamedAndItsReplacementIsUsed(t *testing.T) {
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	cases := map[string]struct {
		server, ours func(w *world, known, unknown *certificates.Authority) certificates.Bundle
		words        string
	}{
		"unknown authority": {
			server: func(w *world, _, unknown *certificates.Authority) certificates.Bundle { return w.issue(unknown, later) },
			words:  "cannot establish TLS: tls: failed to verify certificate: x509: certificate signed by unknown authority",
		},
		"expired server": {
			server: func(w *world, known, _ *certificates.Authority) certificates.Bundle { return w.issue(known, before) },
			words:  "cannot establish TLS: its certificate, or its authority's, has expired or is not valid yet",
		},
		"ours is expired": {
			ours:  func(w *world, known, _ *certificates.Authority) certificates.Bundle { return w.issue(known, before) },
			words: "cannot establish TLS: it refused our certificate or our TLS: tls: expired certificate",
		},
		// Asked for one of certain authorities, we have none to show.
		"ours is unknown": {
			ours: func(w *world, known, unknown *certificates.Authority) certificates.Bundle {
				return trusting(w.issue(unknown, later), w.issue(known, later))
			},
			words: "cannot establish TLS: it refused our certificate or our TLS: tls: certificate required",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.restoresTrust()
			known, unknown := w.authority("known"), w.authority("unknown")
			good := w.issue(known, later)
			server, ours := good, good
			if tc.server != nil {
				server = tc.server(w, known, unknown)
			}
			if tc.ours != nil {
				ours = tc.ours(w, known, unknown)
			}
			w.presents(ours)
			_, shown := w.trusted("guarded", server)
			w.operate(retryAfter(200 * time.Millisecond))
			kind := w.shared(sample)
			w.compose(kind, step("guarded", nil))
			xr := w.xr(kind, "xr", nil)
			w.fails(xr, `function "guarded" at dns:///`+installation.FunctionHost+":", tc.words)

			shown.use(good)
			w.presents(good)
			w.ready(xr)
		})
	}
}

// Authority and both certificates are replaced in the order in which nobody is
// ever met with what he doesn't trust yet.
func TestCertificatesAreRotatedUnderLoadAndNoReconcileFails(t *testing.T) {
	const many = 5
	w := newWorld(t)
	w.restoresTrust()
	later := time.Now().Add(time.Hour)
	old, next := w.authority("old"), w.authority("next")
	oldServer, oldOurs := w.issue(old, later), w.issue(old, later)
	nextServer, nextOurs := w.issue(next, later), w.issue(next, later)
	w.presents(oldOurs)
	server, shown := w.trusted("rotated", oldServer)
	w.operate()
	kind := w.shared(sample)
	w.compose(kind, step("rotated", nil))
	w.create(w.configMap("settings", nil, map[string]string{"value": "0"}))
	xrs := w.crowd(kind, "xr", many, func(int) map[string]any { return map[string]any{"settings": "settings"} })
	xrs.ready()
	w.settled(server.TotalCalls)
	failedBefore := w.failures("rotated")
	since := map[string]any{}
	for i := range many {
		since[xrs.xr(i).GetName()] = w.conditionOf(xrs.xr(i), "Synced")["lastTransitionTime"]
	}

	stop := w.keepChanging("settings")
	for _, rotation := range []func(){
		func() { shown.use(trusting(oldServer, oldServer, nextServer)) },
		func() { w.presents(trusting(oldOurs, oldServer, nextServer)) },
		func() { shown.use(trusting(nextServer, oldServer, nextServer)) },
		func() { w.presents(trusting(nextOurs, oldServer, nextServer)) },
		func() { shown.use(nextServer) },
		func() { w.presents(nextOurs) },
	} {
		rotation()
		calls := server.TotalCalls()
		w.eventually("calls after it", func() (bool, string) {
			return server.TotalCalls() > calls+10*many, strconv.Itoa(server.TotalCalls())
		})
	}
	w.eventually("a connection by the new certificate", func() (bool, string) { return shown.sees(nextOurs) })
	last := stop()
	xrs.shows(last)

	if failed := w.failures("rotated"); failed != failedBefore {
		t.Errorf("%v calls or reconciles failed", failed-failedBefore)
	}
	for i := range many {
		xr := w.live(xrs.xr(i))
		if c := conditionIn(xr, "Synced"); c["status"] != "True" || c["lastTransitionTime"] != since[xr.GetName()] {
			t.Errorf("%s is not synced as before, since %v: %v", xr.GetName(), since[xr.GetName()], c)
		}
	}
}

// keepChanging changes a ConfigMap's value again and again until it is stopped,
// which returns the last value.
func (w *world) keepChanging(name string) (stop func() string) {
	w.t.Helper()
	done := make(chan struct{})
	var last atomic.Int64
	var changing sync.WaitGroup
	changing.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			cm := w.configMap(name, nil, map[string]string{"value": strconv.FormatInt(last.Add(1), 10)})
			if err := w.admin.Update(w.t.Context(), cm); err != nil {
				w.t.Errorf("cannot change ConfigMap %q: %v", name, err)
				return
			}
		}
	})
	return func() string {
		close(done)
		changing.Wait()
		return strconv.FormatInt(last.Load(), 10)
	}
}

// failures counts the calls of the function that had no answer, and the reconciles
// that ended with an error.
func (w *world) failures(function string) float64 {
	w.t.Helper()
	return w.counted("controller_runtime_reconcile_errors_total", nil) +
		w.counted("crosswatch_function_calls_total", map[string]string{"function": function, "!code": "OK"})
}
