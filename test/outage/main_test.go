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
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/controlplane"
	"github.com/crosswatch-io/crosswatch/test/faults"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

const (
	// tolerance is for how long a watch may be blind, or the API server silent,
	// before the operator has to say so.
	tolerance = 2500 * time.Millisecond
	// seed of the faults that happen to a share of the requests.
	seed = 6
)

// testCluster is what all tests share: a cluster, and the one operator.
type testCluster struct {
	*installation.Installation // its Admin goes past the proxy

	proxy   *faults.Proxy
	clock   *jumpingClock       // the operator's
	probes  string              // the address of the operator's probes
	mirrors *mirrors            // made by the first test that needs them
	servers []*functions.Server // of all functions
	ended   chan error          // what the operator ended with; it must not before the last test
	stop    context.CancelFunc  // ends the operator
}

var cluster *testCluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	// The operator logs by itself; what controller-runtime says besides is noise.
	ctrl.SetLogger(logr.Discard())
	plane, err := controlplane.Start(context.Background(), controlplane.Config{ControllerManager: true})
	if err != nil {
		return complain(err)
	}
	cluster, err = newCluster(context.Background(), plane)
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

// newCluster installs the operator, and starts it behind the proxy.
func newCluster(ctx context.Context, plane *controlplane.ControlPlane) (*testCluster, error) {
	installed, err := installation.Install(ctx, plane, "../../config/default", "../e2e/manifests")
	if err != nil {
		return nil, err
	}
	c := &testCluster{Installation: installed, clock: &jumpingClock{}, ended: make(chan error, 1)}
	return c, c.operate(ctx)
}

// operate starts the operator under its own ServiceAccount.
func (c *testCluster) operate(ctx context.Context) error {
	cfg, err := c.OperatorConfig(ctx)
	if err != nil {
		return err
	}
	c.proxy, err = faults.Start(cfg, seed)
	if err != nil {
		return err
	}
	c.probes, err = freeAddress()
	if err != nil {
		return err
	}
	o := app.NewOptions()
	o.MetricsBindAddress = "0"
	o.HealthProbeBindAddress = c.probes
	o.LogLevel = app.LogLevelError
	o.FunctionRuntime = app.FunctionRuntimeExternal
	o.StatusInterval = 200 * time.Millisecond
	o.SweepInterval = time.Second
	o.SyncInterval = 10 * 365 * 24 * time.Hour // what is missed must not be found by a resync
	o.RetryBaseDelay, o.RetryMaxDelay = 500*time.Millisecond, 2*time.Second
	o.FailureTolerance = tolerance
	o.Clock = c.clock

	running, cancel := context.WithCancel(logr.NewContext(context.Background(), logr.Discard()))
	c.stop = cancel
	go func() { c.ended <- app.Run(running, c.proxy.Config(), o) }()
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
func (c *testCluster) end() error {
	c.stop()
	for _, server := range c.servers {
		server.Stop()
	}
	errs := []error{<-c.ended, c.proxy.Stop(), c.Plane.Stop()}
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
