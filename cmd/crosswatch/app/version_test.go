// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import "testing"

func TestVersionIsWhatTheBuildWasTold(t *testing.T) {
	if Version() == "" {
		t.Error("a build that was told nothing has no version at all")
	}
	before := version
	defer func() { version = before }()
	version = "v1.2.3-4-gabcdef0"
	if got := Version(); got != version {
		t.Errorf("got %q, want %q", got, version)
	}
}
