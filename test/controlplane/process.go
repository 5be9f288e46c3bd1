// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// tailBytes is how much of a log an error quotes.
const tailBytes = 2000

// process is a child process whose output goes to a log.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed once the process has ended
}

// startProcess runs path in a process group of its own, so that an interrupt
// from the terminal reaches us alone, and we end it in order.
func startProcess(dir, path string, args ...string) (*process, error) {
	name := filepath.Base(path)
	log, err := openLog(dir, name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	p := &process{cmd: cmd, log: log.Name(), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	return p, nil
}

// ended is an error if the process no longer runs.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended by itself (%s): it said: %s", filepath.Base(p.cmd.Path), p.cmd.ProcessState, tail(p.log))
	default:
		return nil
	}
}

// stop asks the process to end, kills it if it does not, and waits for it. It
// may be called again.
func (p *process) stop() error {
	name := filepath.Base(p.cmd.Path)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop %s: %w", name, err)
	}
	timeout := time.NewTimer(processTimeout)
	defer timeout.Stop()
	select {
	case <-p.done:
		return nil
	case <-timeout.C:
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill %s: %w", name, err)
	}
	<-p.done
	return fmt.Errorf("%s did not stop within %s and was killed", name, processTimeout)
}

// openLog opens the log of a process for appending: one that is restarted goes
// on in the same file.
func openLog(dir, name string) (*os.File, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of %s: %w", name, err)
	}
	return log, nil
}

// tail is the end of a log, for an error.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	content = bytes.TrimSpace(content)
	if len(content) > tailBytes {
		content = content[len(content)-tailBytes:]
	}
	return string(content)
}
