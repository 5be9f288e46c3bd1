// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package dependency

import "testing"

func TestRegistry(t *testing.T) {
	r := NewRegistry()
	first := r.Tracker("apps.example.org")
	if r.Tracker("apps.example.org") != first {
		t.Error("a controller's tracker changed by itself")
	}
	if r.Tracker("jobs.example.org") == first {
		t.Error("two controllers share a tracker")
	}

	mine := NewTracker()
	r.Set("apps.example.org", mine)
	if r.Tracker("apps.example.org") != mine {
		t.Error("a tracker that was set is not the controller's")
	}

	r.Delete("apps.example.org")
	r.Delete("apps.example.org")
	if got := r.Tracker("apps.example.org"); got == mine || got == first {
		t.Error("a tracker that was deleted came back")
	}
}
