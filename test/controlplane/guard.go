// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// guardScript waits for the end of its input, which comes at the latest when our
// process ends, and then kills what has a pid file in $1 and removes $2.
const guardScript = `cat >/dev/null
for file in "$1"/*.pid; do
	[ ! -f "$file" ] || kill -KILL "$(cat "$file")" 2>/dev/null
done
[ -z "$2" ] || rm -rf "$2"
`

// guard ends the control plane's processes when ours is killed, or exits without
// Stop, as a test does that runs into its time limit: in process groups of
// their own they would run on for ever.
type guard struct {
	cmd     *exec.Cmd
	release io.Closer // ends the guard's input
	dir     string    // of the launchers and their pid files
}

// startGuard guards what is started through launchers in dir, and removes
// leftovers, if not empty, when it has to act.
func startGuard(dir, leftovers string) (*guard, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the folder %q: %w", dir, err)
	}
	cmd := exec.Command("/bin/sh", "-c", guardScript, "guard", dir, leftovers)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make the guard's input: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the guard: %w", err)
	}
	return &guard{cmd: cmd, release: input, dir: dir}, nil
}

// launcher writes a script that notes its process in a pid file and becomes the
// binary, and returns its path, whose last element is the binary's.
func (g *guard) launcher(binary string) (string, error) {
	quoted := "'" + strings.ReplaceAll(binary, "'", `'\''`) + "'"
	script := "#!/bin/sh\necho $$ >\"$0.pid\"\nexec " + quoted + " \"$@\"\n"
	path := filepath.Join(g.dir, filepath.Base(binary))
	// A process that is forked while the script is open for writing would hold
	// it open, and the script could not be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("cannot write the launcher of %s: %w", filepath.Base(binary), err)
	}
	return path, nil
}

// stop dismisses the guard once the processes have ended, so that it kills
// nothing.
func (g *guard) stop() error {
	if err := os.RemoveAll(g.dir); err != nil {
		return fmt.Errorf("cannot remove the launchers: %w", err)
	}
	if err := errors.Join(g.release.Close(), g.cmd.Wait()); err != nil {
		return fmt.Errorf("cannot stop the guard: %w", err)
	}
	return nil
}
