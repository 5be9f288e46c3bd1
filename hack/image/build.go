// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// annotationContainerd is where containerd looks for an image's full name; the OCI's
// own annotation holds the tag alone.
const (
	annotationContainerd = "io.containerd.image.name"
	annotationTag        = "org.opencontainers.image.ref.name"
)

// build compiles the operator for each platform, writes the image into the output
// folder in place of an earlier one, and returns the digest of its index.
func build(ctx context.Context, o options) (v1.Hash, error) {
	images := make([]v1.Image, 0, len(o.platforms))
	for _, platform := range o.platforms {
		binary, err := compile(ctx, o, platform)
		if err != nil {
			return v1.Hash{}, err
		}
		image, err := pack(o, platform, binary)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("cannot make the image for %s: %w", platform, err)
		}
		images = append(images, image)
	}
	index, err := assemble(images)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("cannot make the image's index: %w", err)
	}
	if err := write(o, index, images); err != nil {
		return v1.Hash{}, fmt.Errorf("cannot write the image into %q: %w", o.output, err)
	}
	return index.Digest()
}

// compile returns the operator's binary for a platform. It needs nothing of a
// system but the kernel: that is what CGO_ENABLED=0 is for. Nothing of the
// repository around the sources goes into it, so that an archive of them, or a
// worktree, makes the same image: -buildvcs=false is for that.
func compile(ctx context.Context, o options, platform v1.Platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "crosswatch-image-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, binaryName)

	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags="+strings.TrimSpace("-s -w "+o.ldflags), "-o", path, "./cmd/"+binaryName)
	cmd.Dir = o.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot compile the operator for %s: %w: %s", platform, err, bytes.TrimSpace(output.Bytes()))
	}
	return os.ReadFile(path)
}

func write(o options, index v1.ImageIndex, images []v1.Image) error {
	folder := filepath.Join(o.output, "image")
	// A layout can be added to: blobs of earlier builds would stay in it.
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(o.output, 0o755)); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		annotationContainerd: o.tag.Name(),
		annotationTag:        o.tag.TagStr(),
	}))
	if err != nil {
		return err
	}
	for i, platform := range o.platforms {
		if err := tarball.WriteToFile(archive(o, platform), o.tag, images[i]); err != nil {
			return err
		}
	}
	return nil
}

func archive(o options, platform v1.Platform) string {
	return filepath.Join(o.output, fmt.Sprintf("image-%s-%s.tar", platform.OS, platform.Architecture))
}
