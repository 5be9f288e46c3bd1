// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
)

// kubeconfigEnv names, to a process that is to be an operator, its kubeconfig.
const kubeconfigEnv = "SOAKED_OPERATOR_KUBECONFIG"

// operate is what the process of a replica does, until it is told to end or whoever
// started it is gone.
func operate(kubeconfig string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	o := options()
	log, err := app.NewLogger(o)
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	klog.SetLogger(logr.Discard())
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	return app.Run(logr.NewContext(ctx, log), cfg, o)
}

// options are the defaults, but that no resync finds what was missed, and that all
// else which takes time takes less of it.
func options() app.Options {
	o := app.NewOptions()
	o.MetricsBindAddress, o.HealthProbeBindAddress = "0", "0"
	o.LogLevel = app.LogLevelError
	o.FunctionRuntime = app.FunctionRuntimeExternal
	o.SyncInterval = 10 * 365 * 24 * time.Hour
	o.VerifyInterval = 3 * time.Second
	o.SweepInterval = 100 * time.Millisecond
	o.StatusInterval = time.Second
	o.RetryBaseDelay, o.RetryMaxDelay = 100*time.Millisecond, time.Second
	o.LeaderElect = true
	o.LeaderElectLeaseDuration, o.LeaderElectRenewDeadline, o.LeaderElectRetryPeriod = 3*time.Second, 2*time.Second, 500*time.Millisecond
	return o
}

// replica is one of the operator's. It is started again whenever it ends, as a
// kubelet does.
type replica struct {
	kubeconfig, log string

	mu      sync.Mutex
	running *os.Process // guarded by mu; nil before the first start
	stopped bool        // guarded by mu
	done    chan error  // what it ended with that it should not have ended with
}

// replicate runs a replica until stop.
func replicate(kubeconfig, log string) *replica {
	r := &replica{kubeconfig: kubeconfig, log: log, done: make(chan error, 1)}
	go func() { r.done <- r.run() }()
	return r
}

func (r *replica) run() error {
	log, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	for {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), kubeconfigEnv+"="+r.kubeconfig)
		cmd.Stdout, cmd.Stderr = log, log
		alive, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if started, err := r.start(cmd); !started {
			return errors.Join(err, alive.Close())
		}
		err = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code == raceDetected || code == panicked {
			return fmt.Errorf("an operator ended with %w: see its log", err)
		}
	}
}

// How a Go process ends that has no other way out, with 1 being what the operator
// ends with if it can't go on, as without its lease.
const (
	panicked     = 2
	raceDetected = 66
)

// start starts a process unless the replica is stopped.
func (r *replica) start(cmd *exec.Cmd) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false, nil
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	r.running = cmd.Process
	return true, nil
}

// end sends the signal to the process that runs now.
func (r *replica) end(how syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		return nil
	}
	if err := r.running.Signal(how); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot send %s to an operator: %w", how, err)
	}
	return nil
}

// stop ends the replica, and says what went wrong with it.
func (r *replica) stop() error {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	return errors.Join(r.end(syscall.SIGTERM), <-r.done)
}
