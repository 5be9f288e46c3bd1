// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"runtime/debug"
)

// version is set by the linker where the build knows better than Go does: see the Makefile.
var version string

// Version returns the operator's version: what the build was told, or else what Go found out about the module it built.
func Version() string {
	return cmp.Or(version, moduleVersion(), "unknown")
}

func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}
