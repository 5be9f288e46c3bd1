// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	stopTimeout  = 15 * time.Second
	readyTimeout = time.Minute
	// tailBytes is how much of a log is shown when its process fails.
	tailBytes = 3000
)

// process is a program that the demo started.
type process struct {
	cmd *exec.Cmd
	// done is closed once the process has ended and nothing of it is left.
	done chan struct{}
}

// start runs a program in a process group of its own, so that Ctrl-C reaches the
// demo alone, which then stops everything in order.
func start(log, program string, args ...string) (*process, error) {
	output, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	cmd := exec.Command(program, args...) //nolint:noctx // It ends by stop, not by a context that would kill it.
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), output.Close())
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // ProcessState keeps how it ended.
		_ = output.Close()
	}()
	return p, nil
}

// ended says how a process that is done came to its end.
func (p *process) ended() error {
	return fmt.Errorf("%s ended by itself: %s", filepath.Base(p.cmd.Path), p.cmd.ProcessState)
}

// stop asks a process to end, and makes it end if it does not within a while.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", filepath.Base(p.cmd.Path), err)
	}
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-p.done:
		return nil
	case <-timeout.C:
	}
	killed := p.cmd.Process.Kill()
	<-p.done
	return errors.Join(killed, fmt.Errorf("%s did not stop within %s and was killed", filepath.Base(p.cmd.Path), stopTimeout))
}

// ready waits until a URL answers that all is well.
func ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := probe(ctx, url)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", errors.Join(context.Cause(ctx), last))
		case <-ticker.C:
		}
	}
}

func probe(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = rsp.Body.Close() }()
	body, err := io.ReadAll(rsp.Body)
	if err == nil && rsp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", rsp.Status, bytes.TrimSpace(body))
	}
	return err
}

// freeAddress is a local address that nothing listened at a moment ago.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// tail is the end of a log.
func tail(path string) []byte {
	content, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	content = bytes.TrimSpace(content)
	return content[max(0, len(content)-tailBytes):]
}
