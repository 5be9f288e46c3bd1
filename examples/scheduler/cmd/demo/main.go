// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo tells the scheduler's story on a control plane of its own: a
// replica has no cluster to run on, a cluster becomes ready, and the replica is
// scheduled, though nothing of its deployment has changed. It shows how long each
// step took and stays up to be looked at until it is interrupted.
//
// With --check it also fails if a step goes another way than told, measures one
// step many times, and exits. It is run from the root of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// options are the flags.
type options struct {
	check     bool
	rounds    int
	operator  string
	config    string
	manifests string
	dir       string
	auditLog  string
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err = run(ctx, o, newPrinter(os.Stdout))
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted && !o.check:
		// Being interrupted is how the demo ends.
	case err != nil:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// parse reads the flags, and has said what is wrong with them if it returns an error.
func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.BoolVar(&o.check, "check", false, "measure how long a change takes to propagate, and exit")
	flags.IntVar(&o.rounds, "rounds", 20, "with --check: how often to measure")
	flags.StringVar(&o.operator, "operator", "bin/crosswatch", "the operator's binary")
	flags.StringVar(&o.config, "config", "config/demo", "kustomization that the operator's own kinds and access come from")
	flags.StringVar(&o.manifests, "manifests", "examples/scheduler/manifests", "folder of the example's manifests")
	flags.StringVar(&o.dir, "dir", "", "folder for data and logs, which stays afterwards; default: a temporary one that does not")
	flags.StringVar(&o.auditLog, "audit-log", "", "file for the API server's audit log; default: none")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 {
		err := errors.New("--rounds must be at least 1")
		fmt.Fprintln(flags.Output(), err)
		return o, err
	}
	return o, nil
}

// run sets the scene, tells the story, and leaves nothing running.
func run(ctx context.Context, o options, p *printer) (err error) {
	p.title("The scheduler's story")
	s, err := setStage(ctx, o, p)
	if err != nil {
		return err
	}
	// The last line of a check is its figure, so it is printed once all is quiet.
	var figures samples
	defer func() {
		err = errors.Join(err, s.strike())
		if err == nil && o.check {
			p.line("%s", figures)
		}
	}()

	told := &story{stage: s, options: o, printer: p}
	if err := told.tell(s.ctx); err != nil {
		return s.explain(err)
	}
	if err := told.show(s.ctx); err != nil {
		return err
	}
	if o.check {
		figures = told.figures
		return nil
	}
	p.lookAround(s.plane.Kubeconfig(), s.plane.KubectlPath(), s.operatorLog)
	<-s.ctx.Done()
	return context.Cause(s.ctx)
}
