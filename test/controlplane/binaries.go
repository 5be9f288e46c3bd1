// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const assetsVariable = "KUBEBUILDER_ASSETS"

// binaries are absolute paths of executables.
type binaries struct {
	etcd, apiServer, kubectl string
	controllerManager        string // empty unless it was asked for
}

// findBinaries looks where KUBEBUILDER_ASSETS says, and in bin/k8s only if it
// says nothing. The controller manager is looked for in both, since published
// folders of binaries lack it.
func findBinaries(controllerManager bool) (binaries, error) {
	built, err := builtFolder()
	if err != nil {
		return binaries{}, err
	}
	folder := os.Getenv(assetsVariable)
	if folder == "" {
		folder = built
	}

	var found binaries
	var errs []error
	find := func(path *string, name string, folders ...string) {
		var err error
		*path, err = findBinary(name, folders...)
		errs = append(errs, err)
	}
	find(&found.etcd, "etcd", folder)
	find(&found.apiServer, "kube-apiserver", folder)
	find(&found.kubectl, "kubectl", folder)
	if controllerManager {
		find(&found.controllerManager, "kube-controller-manager", folder, built)
	}
	if err := errors.Join(errs...); err != nil {
		return binaries{}, fmt.Errorf("run `make controlplane`, or set %s to a folder of the control plane's binaries: %w", assetsVariable, err)
	}
	return found, nil
}

func findBinary(name string, folders ...string) (string, error) {
	for _, folder := range folders {
		path, err := filepath.Abs(filepath.Join(folder, name))
		if err != nil {
			return "", fmt.Errorf("cannot resolve %q: %w", filepath.Join(folder, name), err)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not in %q", name, folders)
}

// builtFolder is bin/k8s of the module around the working directory, which for
// a test is its package's folder.
func builtFolder() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "bin", "k8s"), nil
		}
		if dir == filepath.Dir(dir) {
			// Outside the repository only KUBEBUILDER_ASSETS can name the binaries.
			return filepath.Join(start, "bin", "k8s"), nil
		}
	}
}
