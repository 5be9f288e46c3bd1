// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	binaryName = "crosswatch"
	// user is nobody in particular, by number, so that Kubernetes can tell that it is not root.
	user = "65532:65532"
)

// pack returns an image that holds the binary and nothing else.
func pack(o options, platform v1.Platform, binary []byte) (v1.Image, error) {
	layer, err := layerOf(binary, o.created)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS:           platform.OS,
		Architecture: platform.Architecture,
		Created:      v1.Time{Time: o.created},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       user,
			Entrypoint: []string{"/" + binaryName},
			WorkingDir: "/",
			Labels:     labels(o),
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: "hack/image"},
	})
}

// layerOf returns a layer with the binary at the root. It belongs to root, so that
// who runs it can't change it.
func layerOf(binary []byte, created time.Time) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	header := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     binaryName,
		Mode:     0o755,
		Size:     int64(len(binary)),
		ModTime:  created,
		Format:   tar.FormatPAX,
	}
	if err := writer.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := writer.Write(binary); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func labels(o options) map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title":       "Crosswatch",
		"org.opencontainers.image.description": "Composes resources, and reconciles them when what they depend on changes",
		"org.opencontainers.image.source":      "https://github.com/crosswatch-io/crosswatch",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     o.tag.TagStr(),
		"org.opencontainers.image.created":     o.created.Format(time.RFC3339),
	}
	if o.revision != "" {
		all["org.opencontainers.image.revision"] = o.revision
	}
	return all
}

// assemble returns an index by which a runtime finds the image of its platform.
func assemble(images []v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: config.Platform()},
		})
	}
	return index, nil
}
