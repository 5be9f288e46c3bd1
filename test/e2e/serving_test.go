// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
)

// freeAddress is a local address that nobody listens at.
func (w *world) freeAddress() string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.must(l.Close())
	return l.Addr().String()
}

// get returns the status and body that the URL answers with; zero while it does
// not answer.
func (w *world) get(url, token string) (int, string) {
	w.t.Helper()
	// The operator signs its own certificate: what is tested is who gets in.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
	w.must(err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	rsp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = rsp.Body.Close() }()
	body, err := io.ReadAll(rsp.Body)
	w.must(err)
	return rsp.StatusCode, string(body)
}

func (w *world) answers(url, token string, want int) string {
	w.t.Helper()
	var body string
	w.eventually(fmt.Sprintf("%s to answer %d", url, want), func() (bool, string) {
		var got int
		got, body = w.get(url, token)
		return got == want, fmt.Sprint(got, " ", body)
	})
	return body
}

// token makes a ServiceAccount in the test's namespace and a token of it.
func (w *world) token(name string) string {
	w.t.Helper()
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
	cfg, err := cluster.Plane.ServiceAccountConfig(w.t.Context(), w.namespace, name)
	w.must(err)
	return cfg.BearerToken
}

func TestMetricsAreServedOverTLSToThoseWhoMayReadThem(t *testing.T) {
	w := newWorld(t)
	address := w.freeAddress()
	w.operate(func(o *app.Options, _ *rest.Config) { o.MetricsBindAddress = address })

	url := "https://" + address + "/metrics"
	w.answers(url, "", http.StatusUnauthorized)
	w.answers(url, w.token("stranger"), http.StatusForbidden)
	if body := w.answers(url, w.scraper(), http.StatusOK); !strings.Contains(body, "controller_runtime_reconcile_total") {
		t.Errorf("the metrics lack those of the controllers: %.200s", body)
	}
}
