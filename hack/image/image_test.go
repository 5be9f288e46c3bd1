// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var (
	created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tag     = name.MustParseReference("registry.example/crosswatch:v9.8.7").(name.Tag)
	amd64   = v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64   = v1.Platform{OS: "linux", Architecture: "arm64"}
)

// TestBuild builds the operator's image for this machine, since another's costs
// minutes of compiling.
func TestBuild(t *testing.T) {
	here := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	o := options{
		source: "../..", output: t.TempDir(), tag: tag, platforms: []v1.Platform{here}, revision: "abc", created: created,
	}
	digest, err := build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	index := readLayout(t, o, digest)
	images := imagesOf(t, index)
	if len(images) != 1 {
		t.Fatalf("%d images, want one", len(images))
	}
	image := images[0]

	t.Run("IsValid", func(t *testing.T) {
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
	})
	t.Run("RunsTheOperatorAsNobody", func(t *testing.T) {
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		want := v1.Config{
			User:       "65532:65532",
			Entrypoint: []string{"/crosswatch"},
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":       "Crosswatch",
				"org.opencontainers.image.description": "Composes resources, and reconciles them when what they depend on changes",
				"org.opencontainers.image.source":      "https://github.com/crosswatch-io/crosswatch",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     "v9.8.7",
				"org.opencontainers.image.created":     "2026-01-02T03:04:05Z",
				"org.opencontainers.image.revision":    "abc",
			},
		}
		if diff := cmp.Diff(want, config.Config); diff != "" {
			t.Errorf("config (-want +got):\n%s", diff)
		}
		if got := config.Platform(); !got.Equals(here) {
			t.Errorf("platform: got %s, want %s", got, here)
		}
	})
	t.Run("BinaryIsStaticAndStarts", func(t *testing.T) {
		headers, binary := contents(t, image)
		want := []tar.Header{{Typeflag: tar.TypeReg, Name: "crosswatch", Mode: 0o755, ModTime: created, Size: int64(len(binary))}}
		if diff := cmp.Diff(want, headers); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		checkStatic(t, binary)
		if help := runBinary(t, binary, "--help"); !strings.Contains(help, "-leader-elect") {
			t.Errorf("crosswatch --help doesn't explain -leader-elect: %s", help)
		}
	})
	t.Run("ArchiveHasTheSameImage", func(t *testing.T) {
		archived, err := tarball.ImageFromPath(archive(o, here), &tag)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := configName(t, archived), configName(t, image); got != want {
			t.Errorf("archived: got image %s, want %s", got, want)
		}
	})
	t.Run("IsTheSameWithoutARepository", func(t *testing.T) {
		again := o
		again.source, again.output = copySources(t, o.source), t.TempDir()
		got, err := build(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		if got != digest {
			t.Errorf("built again: got %s, want %s", got, digest)
		}
	})
}

// copySources copies what the operator is compiled from, and no .git.
func copySources(t *testing.T, source string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"api", "cmd", "controllers", "internal"} {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join(source, name))); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestBuildTellsWhatDoesNotCompile(t *testing.T) {
	o := options{source: t.TempDir(), output: t.TempDir(), tag: tag, platforms: []v1.Platform{amd64}}
	_, err := build(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "cannot compile the operator for linux/amd64") {
		t.Errorf("got error %v, want it to name step and platform", err)
	}
}

// TestPlatforms shows that a runtime finds its platform's image, and nothing of an
// earlier build, with binaries made up for the purpose.
func TestPlatforms(t *testing.T) {
	o := options{output: t.TempDir(), tag: tag, platforms: []v1.Platform{amd64, arm64}, created: created}
	writeMadeUp(t, o, "earlier, for ")
	digest := writeMadeUp(t, o, "for ")

	index := readLayout(t, o, digest)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for i, image := range imagesOf(t, index) {
		_, binary := contents(t, image)
		found[manifest.Manifests[i].Platform.String()] = string(binary)
	}
	want := map[string]string{"linux/amd64": "for linux/amd64", "linux/arm64": "for linux/arm64"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("binaries by platform (-want +got):\n%s", diff)
	}
	for _, platform := range o.platforms {
		if _, err := tarball.ImageFromPath(archive(o, platform), &tag); err != nil {
			t.Errorf("%s: %v", platform, err)
		}
	}
}

// writeMadeUp writes an image whose binaries are a prefix and their platform, and
// returns the digest of its index.
func writeMadeUp(t *testing.T, o options, prefix string) v1.Hash {
	t.Helper()
	var images []v1.Image
	for _, platform := range o.platforms {
		image, err := pack(o, platform, []byte(prefix+platform.String()))
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, image)
	}
	index, err := assemble(images)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(o, index, images); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestParse(t *testing.T) {
	got, err := parse([]string{
		"--tag=registry.example/crosswatch:v9.8.7", "--platforms=linux/amd64,linux/arm64", "--created=1767323045",
		"--source=/source", "--output=/output", "--ldflags=-X main.version=9", "--revision=abc",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		source: "/source", output: "/output", tag: tag, platforms: []v1.Platform{amd64, arm64},
		ldflags: "-X main.version=9", revision: "abc", created: created,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(options{}), cmp.Comparer(func(a, b name.Tag) bool { return a == b })); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // part of the error
	}{
		"NoTag":           {nil, "--tag"},
		"NameWithoutTag":  {[]string{"--tag=registry.example/crosswatch"}, "--tag"},
		"OtherSystem":     {[]string{"--tag=" + tag.String(), "--platforms=windows/amd64"}, `"windows/amd64"`},
		"NoArchitecture":  {[]string{"--tag=" + tag.String(), "--platforms=linux"}, `"linux"`},
		"EmptyPlatform":   {[]string{"--tag=" + tag.String(), "--platforms=linux/amd64,"}, `""`},
		"PlatformVariant": {[]string{"--tag=" + tag.String(), "--platforms=linux/arm/v7"}, `"linux/arm/v7"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want it to name %s", err, tc.want)
			}
		})
	}
}

// readLayout returns the index in the layout that was written, which must be the
// only one and bear the image's name.
func readLayout(t *testing.T, o options, want v1.Hash) v1.ImageIndex {
	t.Helper()
	path := filepath.Join(o.output, "image")
	root, err := layout.ImageIndexFromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != want {
		t.Fatalf("the layout has %v, want %s alone", manifest.Manifests, want)
	}
	annotations := map[string]string{
		"io.containerd.image.name":          "registry.example/crosswatch:v9.8.7",
		"org.opencontainers.image.ref.name": "v9.8.7",
	}
	if diff := cmp.Diff(annotations, manifest.Manifests[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	blobs, err := filepath.Glob(filepath.Join(path, "blobs", "sha256", "*"))
	if err != nil {
		t.Fatal(err)
	}
	// The index, and of each image the manifest, the config and the layer.
	if want := 1 + 3*len(o.platforms); len(blobs) != want {
		t.Errorf("the layout has %d blobs, want %d", len(blobs), want)
	}
	index, err := root.ImageIndex(want)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func imagesOf(t *testing.T, index v1.ImageIndex) []v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var images []v1.Image
	for _, descriptor := range manifest.Manifests {
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, image)
	}
	return images
}

// contents are the files of an image's one layer, without what depends on the
// archive's format, and the content of the last.
func contents(t *testing.T, image v1.Image) ([]tar.Header, []byte) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("%d layers, want one", len(layers))
	}
	uncompressed, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer uncompressed.Close()
	var headers []tar.Header
	var content []byte
	for reader := tar.NewReader(uncompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return headers, content
		}
		if err != nil {
			t.Fatal(err)
		}
		header.Format, header.PAXRecords, header.ModTime = tar.FormatUnknown, nil, header.ModTime.UTC()
		headers = append(headers, *header)
		if content, err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

// checkStatic finds a binary that asks for a dynamic linker, which the image lacks.
func checkStatic(t *testing.T, binary []byte) {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP {
			t.Error("the binary asks for a dynamic linker")
		}
	}
}

// runBinary runs a binary in an empty folder without an environment, as in the
// image, and returns what it wrote.
func runBinary(t *testing.T, binary []byte, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crosswatch")
	if err := os.WriteFile(path, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{}
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, output)
	}
	return string(output)
}

// configName identifies an image as container engines do.
func configName(t *testing.T, image v1.Image) v1.Hash {
	t.Helper()
	hash, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}
