// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/installation"
)

// process is an operator in a process of its own, as a pod runs it: unlike one
// within the test, it can be killed.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}
}

// buildOperator builds the operator in a folder, as make does, but without what
// only debuggers read: linking takes a third less.
func buildOperator(ctx context.Context, dir string) (binary string, err error) {
	binary = filepath.Join(dir, "crosswatch")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "../../cmd/crosswatch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the operator: %w\n%s", err, out)
	}
	return binary, nil
}

// run runs the operator, one of several replicas, until the test ends or it is
// stopped or killed, and lets it publish each status once in the interval. What it
// logs is shown if the test fails.
func (w *world) run(interval time.Duration) *process {
	w.t.Helper()
	binary, err := cluster.binary()
	w.must(err)
	cfg, err := cluster.OperatorConfig(w.t.Context())
	w.must(err)
	dir := w.t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	w.must(cluster.Plane.WriteKubeconfig(kubeconfig, cfg))
	log, err := os.Create(filepath.Join(dir, "log"))
	w.must(err)

	// It ends by stop or kill, after the test's context has.
	cmd := exec.Command(binary,
		"--kubeconfig="+kubeconfig, "--namespace="+installation.Namespace, "--leader-elect", "--function-runtime="+app.FunctionRuntimeExternal,
		"--status-interval="+interval.String(), "--metrics-bind-address=0", "--health-probe-bind-address=0")
	cmd.Stdout, cmd.Stderr = log, log
	w.must(cmd.Start())
	p := &process{t: w.t, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // ProcessState keeps how it ended
		_ = log.Close()
	}()
	w.t.Cleanup(func() { p.showLog(log.Name()) })
	w.operators = append(w.operators, p)
	return p
}

// stop ends the process as a deletion of its pod does, and waits for it.
func (p *process) stop() { p.end(syscall.SIGTERM) }

// kill ends the process as the loss of its node does.
func (p *process) kill() { p.end(syscall.SIGKILL) }

func (p *process) end(signal os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("cannot end the operator: %v", err)
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Errorf("the operator did not end within %s of %s", patience, signal)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) showLog(path string) {
	if !p.t.Failed() {
		return
	}
	content, err := os.ReadFile(path)
	p.t.Logf("log of process %d (%v):\n%s", p.cmd.Process.Pid, err, content[max(0, len(content)-4000):])
}
