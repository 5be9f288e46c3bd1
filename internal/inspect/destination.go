// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	schemeFile = "file"
	schemeUnix = "unix"

	// maxSocketPath is how many bytes the path of a unix socket has at most on
	// Linux, the byte that ends it apart.
	maxSocketPath = 107

	// dialTime bounds how long a viewer may take to be connected.
	dialTime = 2 * time.Second
)

// A Destination is where lines are written to: a file, or a unix socket that a
// viewer listens on.
type Destination struct {
	scheme string
	path   string
}

// A sink is a destination that is open.
type sink interface {
	io.WriteCloser

	// SetWriteDeadline ends writes that take longer, where that is possible: not
	// of a file on a disk.
	SetWriteDeadline(time.Time) error
}

// ParseDestination takes file:/path or unix:/path, with an absolute path.
func ParseDestination(text string) (Destination, error) {
	scheme, path, _ := strings.Cut(text, ":")
	if scheme != schemeFile && scheme != schemeUnix || !filepath.IsAbs(path) {
		return Destination{}, fmt.Errorf("%q is neither file: nor unix: with an absolute path, such as file:/tmp/rounds.jsonl", text)
	}
	if scheme == schemeUnix && len(path) > maxSocketPath {
		return Destination{}, fmt.Errorf("%q has %d bytes in its path, and a unix socket can have no more than %d: choose a shorter one",
			text, len(path), maxSocketPath)
	}
	return Destination{scheme: scheme, path: path}, nil
}

// String returns the text that was parsed.
func (d Destination) String() string { return d.scheme + ":" + d.path }

// open the destination. That ctx has ended is no reason not to.
func (d Destination) open(ctx context.Context) (sink, error) {
	if d.scheme == schemeFile {
		return openFile(d.path)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, schemeUnix, d.path)
	if err != nil {
		return nil, fmt.Errorf("no viewer listens on %s: %w", d, err)
	}
	return conn, nil
}

// openFile opens a file to append to, which only its owner can read if it is
// new. A line that was written in part, and went no further, is ended.
func openFile(path string) (sink, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := endLine(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func endLine(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	_, err = file.WriteString("\n")
	return err
}
