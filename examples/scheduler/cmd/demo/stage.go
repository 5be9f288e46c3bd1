// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/dynamic"

	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/examples/scheduler/function/scheduler"
	"github.com/crosswatch-io/crosswatch/examples/scheduler/function/server"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
)

const (
	operatorNamespace      = "crosswatch-system"
	operatorServiceAccount = "crosswatch"
)

// stage is everything that runs while the story is told.
type stage struct {
	// ctx ends when the demo is interrupted, and when something on the stage
	// ends by itself; its cause says which.
	ctx    context.Context
	cancel context.CancelCauseFunc

	dir         string
	plane       *controlplane.ControlPlane
	client      dynamic.Interface
	operatorLog string
	// functionAddress is where the function listens.
	functionAddress string

	// undo is what strike does, the last first.
	undo []func() error
}

// setStage starts the control plane, the operator and the function, and applies
// the example's kinds. If it fails, nothing is left running.
func setStage(ctx context.Context, o options, p *printer) (*stage, error) {
	s := &stage{}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	if err := s.makeDir(o); err != nil {
		return nil, fmt.Errorf("make a folder for data and logs: %w", err)
	}
	steps := []struct {
		what string
		do   func(options) error
	}{
		{"etcd and kube-apiserver", s.startControlPlane},
		{"the operator's kinds, access and namespace", s.installOperator},
		{"the operator, with the rights of its service account", s.startOperator},
		{"the scheduler function", s.startFunction},
		{"the example's kinds, composition and function", s.applyExample},
		{"two clusters, east ready and west not, and a notebook on east", s.applyScene},
	}
	for _, step := range steps {
		if err := p.during(step.what, func() error { return step.do(o) }); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", step.what, s.explain(err)), s.strike())
		}
	}
	return s, nil
}

// strike stops what was started, in reverse order, and waits for it.
func (s *stage) strike() error {
	s.cancel(nil)
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	s.undo = nil
	return errors.Join(errs...)
}

// explain adds the end of the operator's log to an error, which names what did
// not happen and can't know why.
func (s *stage) explain(err error) error {
	if err == nil || s.operatorLog == "" {
		return err
	}
	return fmt.Errorf("%w\nThe end of the operator's log:\n%s", err, tail(s.operatorLog))
}

func (s *stage) makeDir(o options) error {
	if o.dir != "" {
		dir, err := filepath.Abs(o.dir)
		if err != nil {
			return fmt.Errorf("resolve %q: %w", o.dir, err)
		}
		s.dir = dir
		return os.MkdirAll(dir, 0o700)
	}
	dir, err := os.MkdirTemp("", "crosswatch-demo-")
	if err != nil {
		return err
	}
	s.dir = dir
	s.undo = append(s.undo, func() error { return os.RemoveAll(dir) })
	return nil
}

func (s *stage) startControlPlane(o options) error {
	plane, err := controlplane.Start(s.ctx, controlplane.Config{Dir: filepath.Join(s.dir, "controlplane"), AuditLog: o.auditLog})
	if err != nil {
		return err
	}
	s.plane = plane
	s.undo = append(s.undo, plane.Stop)
	s.client, err = dynamic.NewForConfig(plane.AdminConfig())
	return err
}

func (s *stage) installOperator(o options) error {
	return s.plane.ApplyKustomize(s.ctx, o.config)
}

func (s *stage) startOperator(o options) error {
	access, err := s.plane.ServiceAccountConfig(s.ctx, operatorNamespace, operatorServiceAccount)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(s.dir, "operator.kubeconfig")
	if err := s.plane.WriteKubeconfig(kubeconfig, access); err != nil {
		return err
	}
	health, err := freeAddress(s.ctx)
	if err != nil {
		return err
	}
	s.operatorLog = filepath.Join(s.dir, "operator.log")
	operator, err := start(s.operatorLog, o.operator,
		"--kubeconfig="+kubeconfig,
		"--namespace="+operatorNamespace,
		"--leader-elect",
		"--allow-development-functions",
		"--status-interval=2s",
		"--metrics-bind-address=0",
		"--health-probe-bind-address="+health,
	)
	if err != nil {
		return err
	}
	s.undo = append(s.undo, operator.stop)
	go func() {
		<-operator.done
		s.cancel(operator.ended())
	}()
	return ready(s.ctx, "http://"+health+"/readyz")
}

// startFunction serves the function in this process and makes the address known
// to applyExample.
func (s *stage) startFunction(options) error {
	listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.functionAddress = listener.Addr().String()
	ctx, stop := context.WithCancel(context.WithoutCancel(s.ctx))
	served := make(chan error, 1)
	go func() {
		err := server.Serve(ctx, listener, scheduler.Server{}, server.Options{Insecure: true})
		served <- err
		s.cancel(err)
	}()
	s.undo = append(s.undo, func() error { stop(); return <-served })
	return nil
}

// applyExample installs the example, tells the operator where its function
// listens here, and returns when deployments can be made.
func (s *stage) applyExample(o options) error {
	if err := s.plane.ApplyKustomize(s.ctx, filepath.Join(o.manifests, "demo")); err != nil {
		return err
	}
	target := pkgv1.AnnotationRuntimeDevelopmentTarget + "=" + s.functionAddress
	if _, err := s.plane.Kubectl(s.ctx, "annotate", "--overwrite", "functions.pkg.crossplane.io/scheduler", target); err != nil {
		return err
	}
	return s.await(s.ctx, established(definitions, "modeldeployments.inference.example.org"))
}

func (s *stage) applyScene(o options) error {
	if err := s.plane.ApplyKustomize(s.ctx, filepath.Join(o.manifests, "samples")); err != nil {
		return err
	}
	// An API server holds the first creation of a kind back for two seconds,
	// while its peers may not have heard of it. That is no part of the story.
	_, err := s.plane.Kubectl(s.ctx, "create", "--dry-run=server", "-f", filepath.Join(o.manifests, "samples", "chat.yaml"))
	return err
}
