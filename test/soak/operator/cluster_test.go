// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
	"github.com/crosswatch-io/crosswatch/test/faults"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/installation"
	"github.com/crosswatch-io/crosswatch/test/soak"
)

// anyXR is the schema of XRs.
const anyXR = `{"type":"object","properties":{
	"spec":{"type":"object","properties":{"plan":{"type":"string"},"value":{"type":"string"}}},
	"status":{"type":"object","properties":{"saw":{"type":"string"}}}}}`

// cluster is a control plane on which the operator is installed, with all kinds, and
// runs.
type cluster struct {
	*installation.Installation

	dir      string
	kinds    *kinds
	proxy    *faults.Proxy
	witness  *witness
	server   *functions.Server
	replicas []*replica
	closers  []func() error // what to do at the end, the last first
}

// newCluster starts one. Whoever gets an error must end it as well.
func newCluster(ctx context.Context, seed uint64) (c *cluster, err error) {
	c = &cluster{witness: &witness{}}
	c.dir, err = os.MkdirTemp("", "crosswatch-soak-")
	if err != nil {
		return c, err
	}
	c.atEnd(func() error { return os.RemoveAll(c.dir) })
	plane, err := controlplane.Start(ctx, controlplane.Config{ControllerManager: true})
	if err != nil {
		return c, err
	}
	c.atEnd(plane.Stop)
	c.Installation, err = installation.Install(ctx, plane, "../../../config/default")
	if err != nil {
		return c, err
	}
	for _, step := range []func(context.Context) error{c.makeKinds, c.serve, c.makeXRKinds} {
		if err := step(ctx); err != nil {
			return c, err
		}
	}
	return c, c.operate(ctx, seed)
}

func (c *cluster) atEnd(do func() error) { c.closers = append(c.closers, do) }

// end ends what newCluster started.
func (c *cluster) end() error {
	var errs []error
	for i := range c.closers {
		errs = append(errs, c.closers[len(c.closers)-1-i]())
	}
	return errors.Join(errs...)
}

func (c *cluster) makeKinds(ctx context.Context) error {
	admin, err := dynamic.NewForConfig(unlimited(c.Plane.AdminConfig()))
	if err != nil {
		return err
	}
	account, err := c.OperatorConfig(ctx)
	if err != nil {
		return err
	}
	operator, err := dynamic.NewForConfig(unlimited(account))
	if err != nil {
		return err
	}
	c.kinds = &kinds{admin: c.Admin, objects: admin, operator: operator, withdrawn: map[string]bool{}, forbidden: map[string]bool{}}
	for _, namespace := range soak.Namespaces {
		if err := c.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return err
		}
	}
	kinds := slices.Concat(soak.ThingKinds, soak.RareKinds, []string{soak.ComposedKind})
	return errors.Join(c.kinds.permit(ctx, kinds...), c.kinds.define(ctx, kinds...))
}

func unlimited(cfg *rest.Config) *rest.Config {
	cfg.QPS = -1
	return cfg
}

// serve serves the witness as a function for each kind of XRs. That of those which
// don't say what they saw is asked each time: else it would not know that they see
// again what they saw before.
func (c *cluster) serve(ctx context.Context) error {
	var err error
	c.server, err = c.Serve(c.witness.handle)
	if err != nil {
		return err
	}
	c.atEnd(func() error { c.server.Stop(); return nil })
	for _, kind := range soak.XRKinds {
		created, err := c.Announce(ctx, strings.ToLower(kind), c.server.Target())
		if err != nil {
			return err
		}
		function, ok := created[0].(*pkgv1.Function)
		if ok && kind == soak.SilentKind {
			function.Annotations = map[string]string{pkgv1.AnnotationFunctionCache: "off"}
			if err := c.Admin.Update(ctx, function); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cluster) makeXRKinds(ctx context.Context) error {
	for _, kind := range soak.XRKinds {
		name := strings.ToLower(kind)
		xrd := installation.Definition(soak.GVK(kind).Group, kind, v1.ScopeNamespaced, anyXR)
		step := v1.PipelineStep{Step: name, FunctionRef: v1.FunctionReference{Name: name}}
		if err := errors.Join(c.Admin.Create(ctx, xrd), c.Admin.Create(ctx, installation.Composition(soak.GVK(kind), step))); err != nil {
			return err
		}
	}
	return nil
}

// operate starts two replicas and waits until they serve the kinds of XRs.
func (c *cluster) operate(ctx context.Context, seed uint64) error {
	account, err := c.OperatorConfig(ctx)
	if err != nil {
		return err
	}
	c.proxy, err = faults.Start(account, seed)
	if err != nil {
		return err
	}
	c.atEnd(c.proxy.Stop)
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	if err := c.Plane.WriteKubeconfig(kubeconfig, c.proxy.Config()); err != nil {
		return err
	}
	for i := range 2 {
		r := replicate(kubeconfig, filepath.Join(c.dir, fmt.Sprintf("operator-%d.log", i)))
		c.replicas = append(c.replicas, r)
		c.atEnd(r.stop)
	}
	for _, kind := range soak.XRKinds {
		if err := c.kinds.served(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// redefine makes an XRD another, with which its controller starts anew.
func (c *cluster) redefine(ctx context.Context, kind, description string) error {
	schema := map[string]any{}
	if err := json.Unmarshal([]byte(anyXR), &schema); err != nil {
		return err
	}
	schema["description"] = description
	raw, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	xrd := installation.Definition(soak.GVK(kind).Group, kind, v1.ScopeNamespaced, anyXR)
	return eventually("XRD "+xrd.Name+" to be changed", func() (bool, error) {
		if err := c.Admin.Get(ctx, client.ObjectKeyFromObject(xrd), xrd); err != nil {
			return false, err
		}
		xrd.Spec.Versions[0].Schema.OpenAPIV3Schema.Raw = raw
		err := c.Admin.Update(ctx, xrd)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// patience is how long after the last change anything may take: longer than what an
// operator that was killed has its lease for, and any pause between two attempts.
const patience = time.Minute

// eventually waits until ok is true or an error is known.
func eventually(what string, ok func() (bool, error)) error {
	const often = 10 * time.Millisecond
	deadline := time.After(patience)
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-deadline:
			return fmt.Errorf("gave up waiting for %s", what)
		case <-time.After(often):
		}
	}
}
