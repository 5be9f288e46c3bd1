// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// printer tells the reader what goes on. It is for one goroutine. Whether the
// reader is a terminal makes no difference: nothing that is printed changes.
type printer struct {
	out io.Writer
	// beat is how often a sign of life is given while something takes long.
	beat time.Duration
}

func newPrinter(out io.Writer) *printer {
	return &printer{out: out, beat: time.Second}
}

func (p *printer) line(format string, args ...any) {
	p.print(format+"\n", args...)
}

// print does not care whether it can: a reader that has gone is no reason to
// leave processes running.
func (p *printer) print(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format, args...)
}

func (p *printer) title(text string) {
	p.line("\n%s\n%s", text, strings.Repeat("-", len(text)))
}

// during prints what is going on while it does, and how long it took.
func (p *printer) during(what string, do func() error) error {
	p.print("  %s ", what)
	start := time.Now()
	if err := p.alive(do); err != nil {
		p.line(" failed")
		return err
	}
	p.line(" %.1f s", time.Since(start).Seconds())
	return nil
}

// scene prints a change before it is made, and its result with the time that do
// returns for it.
func (p *printer) scene(change, result string, do func() (time.Duration, error)) (time.Duration, error) {
	p.line("  %s", change)
	p.print("    -> ")
	var took time.Duration
	err := p.alive(func() (err error) {
		took, err = do()
		return err
	})
	if err != nil {
		p.line(" failed")
		return 0, err
	}
	p.line("%s after %.1f ms", result, milliseconds(took))
	return took, nil
}

// alive prints a dot each beat until do returns.
func (p *printer) alive(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	ticker := time.NewTicker(p.beat)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			p.print(".")
		}
	}
}

// command prints what someone would type, and what came of it.
func (p *printer) command(program string, args []string, output string) {
	p.line("$ %s %s", program, strings.Join(args, " "))
	p.line("%s", output)
}

// scenes prints a table of all that happened.
func (p *printer) scenes(scenes []scene) {
	p.line("%12s   %s", "MILLISECONDS", "CHANGE AND RESULT")
	for _, s := range scenes {
		p.line("%12.1f   %s", milliseconds(s.took), s.change)
		p.line("%12s   %s", "", s.result)
	}
}

// lookAround tells how to go on by oneself.
func (p *printer) lookAround(kubeconfig, kubectl, operatorLog string) {
	p.title("Look around, in another terminal")
	p.line("export KUBECONFIG=%s", kubeconfig)
	p.line("export PATH=%s:$PATH", filepath.Dir(kubectl))
	p.line("kubectl get dws -o wide")
	p.line("kubectl get inferenceclusters")
	p.line("kubectl label inferencecluster west ready=false --overwrite")
	p.line("kubectl get modelreplicas -A --watch")
	p.line("tail -f %s", operatorLog)
	p.line("\nNo controller manager runs here. What a deleted object owns stays, a namespace")
	p.line("that is deleted never goes, and ClusterRoles with the label")
	p.line("crosswatch.io/aggregate-to-crosswatch have to be bound to the operator by hand:")
	p.line("kubectl create clusterrolebinding NAME --clusterrole=ROLE --serviceaccount=%s:%s", operatorNamespace, operatorServiceAccount)
	p.line("Ctrl-C ends it all.")
}
