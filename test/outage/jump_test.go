// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Timers go on while the clock is set; what compares times of the clock must not
// wait for an hour to come again, nor hold that an hour has passed for a fault.
func TestTheClockJumpsAnHourForthAndBack(t *testing.T) {
	const ttl = time.Second
	m := newMirrors(t)
	xr := m.object(m.kind, "short-lived-answers")
	xr.Object["spec"] = map[string]any{"settings": "a", "color": "red", "ttlSeconds": int64(ttl.Seconds())}
	m.create(xr)
	t.Cleanup(func() { m.discard(xr) })
	m.converges()

	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		cluster.clock.jump(jump)
		m.upheaval()
		m.converges()
		m.isAsked(types.NamespacedName{Namespace: m.namespace, Name: xr.GetName()}, 2, 4*ttl)
	}
}

// isAsked fails the test unless the function is asked about an XR so many times
// within the time.
func (m *mirrors) isAsked(xr types.NamespacedName, times int, within time.Duration) {
	m.t.Helper()
	began, before := time.Now(), m.server.Calls(xr)
	m.eventually("the function to be asked", func() (bool, string) {
		got := m.server.Calls(xr) - before
		return got >= times || time.Since(began) > within, strconv.Itoa(got)
	})
	if got := m.server.Calls(xr) - before; got < times {
		m.t.Errorf("the function was asked %d times in %s, want at least %d", got, within, times)
	}
}
