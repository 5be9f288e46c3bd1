// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is what a breaker is by its description: it counts what is left of the
// budget, moment by moment, where a Breaker computes.
type model struct {
	settings Settings
	budget   time.Duration // all of it
	spent    time.Duration
	open     bool
	pause    time.Duration
	sinceRun time.Duration // or since the last charge
}

func (m *model) pass(d time.Duration) {
	for ; d > 0; d -= tick {
		m.spent = max(0, m.spent-tick)
		m.sinceRun += tick
	}
}

func (m *model) start() (closed bool) {
	m.sinceRun = 0
	if !m.open || m.spent > max(0, m.budget-m.settings.Recovery) {
		return false
	}
	m.open = false
	return true
}

func (m *model) charge(c Charge) (opened bool) {
	m.budget = time.Duration(m.settings.Budget+c.Dependencies*m.settings.PerDependency) * m.settings.Refill
	m.sinceRun = 0
	if !m.open {
		m.spent += m.settings.Refill
		if m.spent > m.budget {
			m.open, m.pause, m.spent = true, m.settings.Refill, max(m.budget, m.settings.Recovery)
			return true
		}
		return false
	}
	if c.Rewrote {
		m.pause *= 2
		if m.pause > m.settings.LongestPause {
			m.pause = m.settings.LongestPause
		}
		m.spent += m.pause + m.pause
	} else {
		m.spent += m.settings.Refill + m.settings.Refill
	}
	if most := max(m.budget, m.settings.Recovery); m.spent > most {
		m.spent = most
	}
	return false
}

func (m *model) wait() time.Duration {
	if !m.open || m.sinceRun >= m.pause {
		return 0
	}
	return m.pause - m.sinceRun
}

func (m *model) shortWait() time.Duration {
	if !m.open || m.sinceRun >= m.settings.Refill {
		return 0
	}
	return m.settings.Refill - m.sinceRun
}

// tick divides all times of the test.
const tick = 250 * time.Millisecond

// Whatever is charged when, a breaker says what the model does.
func TestABreakerAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := Settings{
			Budget:        rapid.IntRange(1, 12).Draw(t, "budget"),
			PerDependency: rapid.IntRange(0, 3).Draw(t, "per dependency"),
			Refill:        time.Second,
			LongestPause:  time.Duration(rapid.IntRange(1, 8).Draw(t, "longest pause")) * time.Second,
		}
		settings.Recovery = settings.LongestPause + time.Second
		b, m, now := New(settings), &model{settings: settings}, start

		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				d := time.Duration(rapid.IntRange(1, 40).Draw(t, "ticks")) * tick
				now = now.Add(d)
				m.pass(d)
			},
			"what waits runs": func(t *rapid.T) {
				d := b.Wait(now)
				now = now.Add(d)
				m.pass(d)
				if got, want := b.Start(now), m.start(); got != want {
					t.Fatalf("closed %t, want %t", got, want)
				}
			},
			"a run starts": func(t *rapid.T) {
				if got, want := b.Start(now), m.start(); got != want {
					t.Fatalf("closed %t, want %t", got, want)
				}
			},
			"a run is charged": func(t *rapid.T) {
				c := Charge{
					Cause:        rapid.SampledFrom([]Object{fought, another}).Draw(t, "cause"),
					Rewrote:      rapid.Bool().Draw(t, "rewrote"),
					Dependencies: rapid.IntRange(0, 2).Draw(t, "dependencies"),
				}
				if got, want := b.Charge(now, c), m.charge(c); got != want {
					t.Fatalf("opened %t, want %t", got, want)
				}
			},
			"": func(t *rapid.T) {
				if _, open := b.Open(); open != m.open {
					t.Fatalf("open %t, want %t", open, m.open)
				}
				if got, want := b.Wait(now), m.wait(); got != want {
					t.Fatalf("wait %s, want %s", got, want)
				}
				if got, want := b.ShortWait(now), m.shortWait(); got != want {
					t.Fatalf("short wait %s, want %s", got, want)
				}
			},
		})
	})
}

// Whoever rewrites as often as it is let gets no more runs in a time than the budget,
// what comes back in that time, and, in the long run, one in each longest pause.
func TestALoopIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newXR(rapid.IntRange(0, 20).Draw(t, "dependencies"))
		latency := time.Duration(rapid.IntRange(1, 900).Draw(t, "latency in ms")) * time.Millisecond
		for !x.run(fought, true) {
			x.after(latency)
		}
		opened, runs := x.now, 0
		for x.now.Sub(opened) < time.Hour {
			x.after(max(latency, x.Wait(x.now))).run(fought, true)
			runs++
			if !x.isOpen() {
				t.Fatalf("it closed %s after it opened", x.now.Sub(opened))
			}
		}
		if most := 5 + 120; runs > most {
			t.Errorf("%d runs in the hour after it opened, want %d at most", runs, most)
		}
	})
}

// However it was used, a breaker that is left alone closes, and an event that waits
// is answered after the longest pause at most.
func TestABreakerThatIsLeftAloneCloses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newXR(rapid.IntRange(0, 20).Draw(t, "dependencies"))
		for range rapid.IntRange(0, 2000).Draw(t, "runs") {
			x.after(x.Wait(x.now)).run(fought, rapid.Bool().Draw(t, "rewrote"))
		}
		if got := x.Wait(x.now); got > 30*time.Second {
			t.Fatalf("an event waits for %s", got)
		}
		x.after(time.Minute).Start(x.now)
		if x.isOpen() {
			t.Fatal("it is open after a quiet minute")
		}
	})
}
