// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Command crosswatch is the operator. It parses flags; package app does the rest.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "crosswatch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	options := app.NewOptions()
	flags := flag.NewFlagSet("crosswatch", flag.ExitOnError)
	options.AddFlags(flags)
	version := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version {
		fmt.Println(app.Version())
		return nil
	}
	if err := options.Validate(); err != nil {
		return fmt.Errorf("invalid flags:\n%w", err)
	}
	logger, err := app.NewLogger(options)
	if err != nil {
		return err
	}
	// Libraries that are given no logger use these.
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	cfg, err := clusterConfig(options.Kubeconfig)
	if err != nil {
		return err
	}
	return app.Run(logr.NewContext(ctx, logger), cfg, options)
}

func clusterConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find out how to reach the API server: %w", err)
	}
	return cfg, nil
}
