// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// strict makes kubectl fail for what is misspelt, deprecated, or would be refused
// later, as pods that a namespace doesn't admit.
var strict = []string{"--validate=strict", "--warnings-as-errors"}

// TestDefaultIsApplied applies config/default once more as it was applied before,
// which changes nothing, and then on the server's side, which has no conflict with
// that.
func TestDefaultIsApplied(t *testing.T) {
	objects := len(render(t, "default"))
	tests := []struct {
		side, outcome string
	}{
		{"--server-side=false", " unchanged"},
		{"--server-side=true", " serverside-applied"},
	}
	for _, tc := range tests {
		out := kubectl(t, append(strict, "apply", tc.side, "-k", configDir+"/default")...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for _, line := range lines {
			if !strings.HasSuffix(line, tc.outcome) {
				t.Errorf("apply %s: got %q, want it to end with %q", tc.side, line, tc.outcome)
			}
		}
		if len(lines) != objects {
			t.Errorf("apply %s named %d objects, config/default has %d", tc.side, len(lines), objects)
		}
	}
}

// TestOverlaysAreAccepted applies the other kustomizations, on the cluster that
// has config/default and as far as a dry run goes.
func TestOverlaysAreAccepted(t *testing.T) {
	for _, dir := range []string{"dev", "ha", "demo"} {
		t.Run(dir, func(t *testing.T) {
			kubectl(t, append(strict, "apply", "--dry-run=server", "-k", filepath.Join(configDir, dir))...)
		})
	}
}

// TestSamples needs no operator, and so leaves out the XR, whose kind that would
// have to make.
func TestSamples(t *testing.T) {
	const xrGroup = "samples.crosswatch.io"
	var known []unstructured.Unstructured
	for _, object := range render(t, "samples") {
		if object.GroupVersionKind().Group != xrGroup {
			known = append(known, object)
		}
	}
	if want := len(render(t, "samples")) - 1; len(known) != want {
		t.Errorf("%d samples are of no kind in group %q, want all but one, %d", len(known), xrGroup, want)
	}
	path := filepath.Join(t.TempDir(), "samples.yaml")
	writeObjects(t, path, known)
	kubectl(t, append(strict, "apply", "--dry-run=server", "-f", path)...)
}

// rendered is what render has returned, by folder: kubectl takes a second for each.
// No test of this package runs beside another.
var rendered = map[string][]unstructured.Unstructured{}

// render returns what kubectl makes of a folder of config. It is for reading only.
func render(t *testing.T, dir string) []unstructured.Unstructured {
	t.Helper()
	if objects, ok := rendered[dir]; ok {
		return objects
	}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(kubectl(t, "kustomize", filepath.Join(configDir, dir))), 1<<16)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return rendered[dir]
		}
		if err != nil {
			t.Fatalf("config/%s: %v", dir, err)
		}
		rendered[dir] = append(rendered[dir], object)
	}
}

// find returns the one object of a kind with the operator's name, as its type.
func find[T any](t *testing.T, dir, kind string) *T {
	t.Helper()
	for _, object := range render(t, dir) {
		if object.GetKind() != kind || !strings.HasPrefix(object.GetName(), name) {
			continue
		}
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
			t.Fatalf("config/%s, %s %q: %v", dir, kind, object.GetName(), err)
		}
		return typed
	}
	t.Fatalf("config/%s has no %s of the operator", dir, kind)
	return nil
}

func writeObjects(t *testing.T, path string, objects []unstructured.Unstructured) {
	t.Helper()
	var content bytes.Buffer
	for i := range objects {
		json, err := objects[i].MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		content.Write(json) // ends with a newline
		content.WriteString("---\n")
	}
	if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := plane.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
