// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package server serves a composition function over gRPC.
package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// maxMessageSize is the largest request that is accepted, in bytes. A match-everything
// requirement can make requests large; gRPC's own limit is 4 MiB.
const maxMessageSize = 64 << 20

// Options say how a function is served.
type Options struct {
	// Insecure serves plain text, to whoever can connect.
	Insecure bool
	// CertsDir is a folder with tls.crt, tls.key and ca.crt: what the server
	// shows, and what the certificates of its clients must be signed by. The
	// files are read again for each connection, so that they can be replaced
	// while the function runs. Required unless Insecure is set.
	CertsDir string
}

// Serve answers calls on a listener, which it closes, until the context ends and
// calls that run then are answered.
func Serve(ctx context.Context, listener net.Listener, function fnv1.FunctionRunnerServiceServer, o Options) error {
	transport, err := o.credentials()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := grpc.NewServer(grpc.Creds(transport), grpc.MaxRecvMsgSize(maxMessageSize))
	fnv1.RegisterFunctionRunnerServiceServer(server, function)

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the function: %w", err)
	case <-ctx.Done():
		server.GracefulStop()
		return <-served
	}
}

// credentials returns what connections are secured with.
func (o Options) credentials() (credentials.TransportCredentials, error) {
	if o.Insecure {
		return insecure.NewCredentials(), nil
	}
	if o.CertsDir == "" {
		return nil, errors.New("a function is served with mutual TLS and needs a folder of certificates, unless it is told to serve insecurely")
	}
	if _, err := readCertificates(o.CertsDir); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return readCertificates(o.CertsDir)
		},
	}), nil
}

// readCertificates makes a configuration of a folder's tls.crt, tls.key and ca.crt.
func readCertificates(dir string) (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read the server's certificate: %w", err)
	}
	bundle, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the clients' authority: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("read the clients' authority: no certificate in %q", filepath.Join(dir, "ca.crt"))
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{certificate},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		NextProtos:   []string{"h2"},
	}, nil
}
