// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Command function serves the scheduler, the composition function of this
// example, until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/crosswatch-io/crosswatch/examples/scheduler/function/scheduler"
	"github.com/crosswatch-io/crosswatch/examples/scheduler/function/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "function: %v\n", err)
		os.Exit(1)
	}
}

// run reads the flags and serves until the context ends.
func run(ctx context.Context) error {
	var o server.Options
	address := flag.String("address", ":9443", "where to listen")
	flag.BoolVar(&o.Insecure, "insecure", false, "serve plain text instead of mutual TLS")
	flag.StringVar(&o.CertsDir, "tls-server-certs-dir", os.Getenv("TLS_SERVER_CERTS_DIR"),
		"folder with tls.crt, tls.key and ca.crt; default: $TLS_SERVER_CERTS_DIR")
	flag.Parse()

	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", *address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return server.Serve(ctx, listener, scheduler.Server{}, o)
}
