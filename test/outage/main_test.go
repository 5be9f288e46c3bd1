// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	pkgv1 "github.com/crosswatch-io/crosswatch/api/pkg/v1"
	watchv1alpha1 "github.com/crosswatch-io/crosswatch/api/watch/v1alpha1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
	"github.com/crosswatch-io/crosswatch/test/faults"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/certificates"
)

const (
	operatorNamespace      = "crosswatch-system"
	operatorServiceAccount = "crosswatch"
	clientSecret           = "crossplane-tls-client"
	functionHost           = "localhost"

	// tolerance is for how long a watch may be blind, or the API server silent,
	// before the operator has to say so.
	tolerance = 2500 * time.Millisecond
	// seed of the faults that happen to a share of the requests.
	seed = 6
)

// installation is the cluster that all tests share, and the one operator.
type installation struct {
	plane    *controlplane.ControlPlane
	admin    client.WithWatch // goes past the proxy
	proxy    *faults.Proxy
	function certificates.Bundle // what functions serve with
	clock    *jumpingClock       // the operator's
	probes   string              // the address of the operator's probes
	mirrors  *mirrors            // made by the first test that needs them
	servers  []*functions.Server // of all functions
	ended    chan error          // what the operator ended with; it must not before the last test
	stop     context.CancelFunc  // ends the operator
}

var cluster *installation

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	// The operator logs by itself; what controller-runtime says besides is noise.
	ctrl.SetLogger(logr.Discard())
	plane, err := controlplane.Start(context.Background(), controlplane.Config{ControllerManager: true})
	if err != nil {
		return complain(err)
	}
	cluster, err = install(context.Background(), plane)
	if err != nil {
		return complain(errors.Join(err, plane.Stop()))
	}
	code := m.Run()
	if err := cluster.end(); err != nil {
		return complain(err)
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// install does what a user does, and starts the operator behind the proxy.
func install(ctx context.Context, plane *controlplane.ControlPlane) (*installation, error) {
	for _, dir := range []string{"../../config/default", "../e2e/manifests"} {
		if err := plane.ApplyKustomize(ctx, dir); err != nil {
			return nil, err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1.AddToScheme, pkgv1.AddToScheme, watchv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	admin, err := client.NewWithWatch(plane.AdminConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	i := &installation{plane: plane, admin: admin, clock: &jumpingClock{}, ended: make(chan error, 1)}
	if err := i.trust(ctx); err != nil {
		return nil, err
	}
	return i, i.operate(ctx)
}

// trust makes the certificates of both ends, as the package manager would.
func (i *installation) trust(ctx context.Context) error {
	authority, err := certificates.NewAuthority("functions")
	if err != nil {
		return err
	}
	i.function, err = authority.Issue(certificates.Request{Name: "function", DNSNames: []string{functionHost}})
	if err != nil {
		return err
	}
	operator, err := authority.Issue(certificates.Request{Name: "crosswatch"})
	if err != nil {
		return err
	}
	return i.admin.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: clientSecret},
		Type:       corev1.SecretTypeTLS,
		Data:       operator.SecretData(),
	})
}

// operate starts the operator under its own ServiceAccount.
func (i *installation) operate(ctx context.Context) error {
	cfg, err := i.plane.ServiceAccountConfig(ctx, operatorNamespace, operatorServiceAccount)
	if err != nil {
		return err
	}
	i.proxy, err = faults.Start(cfg, seed)
	if err != nil {
		return err
	}
	i.probes, err = freeAddress()
	if err != nil {
		return err
	}
	o := app.NewOptions()
	o.MetricsBindAddress = "0"
	o.HealthProbeBindAddress = i.probes
	o.LogLevel = app.LogLevelError
	o.FunctionRuntime = app.FunctionRuntimeExternal
	o.StatusInterval = 200 * time.Millisecond
	o.SweepInterval = time.Second
	o.SyncInterval = 10 * 365 * 24 * time.Hour // what is missed must not be found by a resync
	o.RetryBaseDelay, o.RetryMaxDelay = 500*time.Millisecond, 2*time.Second
	o.FailureTolerance = tolerance
	o.Clock = i.clock

	running, cancel := context.WithCancel(logr.NewContext(context.Background(), logr.Discard()))
	i.stop = cancel
	go func() { i.ended <- app.Run(running, i.proxy.Config(), o) }()
	return nil
}

func freeAddress() (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// end stops everything, and says what should have ended with it.
func (i *installation) end() error {
	i.stop()
	for _, server := range i.servers {
		server.Stop()
	}
	errs := []error{<-i.ended, i.proxy.Stop(), i.plane.Stop()}
	errs = append(errs, goleak.Find(
		// The watch of a metadata informer that stops with an event on its way waits for ever: a fault of the client library.
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
		// The admin's connections.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
	))
	return errors.Join(errs...)
}
