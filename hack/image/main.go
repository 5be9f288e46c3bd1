// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Command image builds the operator's container image, without a container engine
// and without a network: the static binary on nothing, for each platform, in one
// index. The same sources and flags make the same digest.
//
// It leaves in its output folder
//
//	image                  an OCI image layout, as crane push and skopeo copy read it
//	image-linux-amd64.tar  each platform's image, as docker load and ctr images import read it
//
// It is a module of its own, so that the operator's stays free of registries.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// options are what the image is built from.
type options struct {
	source    string        // the folder of the operator's module
	output    string        // the folder that the image goes into
	tag       name.Tag      // of the image
	platforms []v1.Platform // to build for, in the order that the index lists them
	ldflags   string        // for go build, besides those that leave out what only debuggers read
	revision  string        // of the sources, for people; may be empty
	created   time.Time     // of the image and its files
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	digest, err := build(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("image: %s@%s is in %s, and for container engines in the tarballs beside it\n", o.tag, digest, filepath.Join(o.output, "image"))
	return nil
}

func parse(args []string) (options, error) {
	var o options
	var tag, platforms string
	var created int64
	flags := flag.NewFlagSet("image", flag.ExitOnError)
	flags.StringVar(&o.source, "source", "../..", "folder of the operator's module")
	flags.StringVar(&o.output, "output", "../../dist", "folder that the image goes into")
	flags.StringVar(&tag, "tag", "", "name and tag of the image")
	flags.StringVar(&platforms, "platforms", "linux/amd64", "platforms to build for, separated by commas")
	flags.StringVar(&o.ldflags, "ldflags", "", "more flags for the linker")
	flags.StringVar(&o.revision, "revision", "", "revision of the sources")
	flags.Int64Var(&created, "created", 0, "Unix time that image and files get")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o.created = time.Unix(created, 0).UTC()

	var errs []error
	var err error
	if o.tag, err = name.NewTag(tag, name.StrictValidation); err != nil {
		errs = append(errs, fmt.Errorf("--tag: %w", err))
	}
	if o.platforms, err = parsePlatforms(platforms); err != nil {
		errs = append(errs, fmt.Errorf("--platforms: %w", err))
	}
	return o, errors.Join(errs...)
}

func parsePlatforms(list string) ([]v1.Platform, error) {
	var platforms []v1.Platform
	for text := range strings.SplitSeq(list, ",") {
		system, architecture, ok := strings.Cut(text, "/")
		if !ok || system != "linux" || architecture == "" || strings.Contains(architecture, "/") {
			return nil, fmt.Errorf("%q is not of the form linux/amd64", text)
		}
		platforms = append(platforms, v1.Platform{OS: system, Architecture: architecture})
	}
	return platforms, nil
}
