// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

//go:build brokenordering

package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/crosswatch-io/crosswatch/internal/dependency"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/test/soak"
)

// The order that the engine relies on is broken here, as it is in systems that
// rely on a resync instead. The soak has to notice each.

// recordLast reads before it records.
type recordLast struct{ recordFirst }

// records is the ordering of the test that runs.
var records ordering = recordFirst{}

func newOrdering() ordering { return records }

func (o recordLast) require(ctx context.Context, c *engine.Controller, x *run, ref dependency.Reference) ([]*unstructured.Unstructured, error) {
	informer := c.Peek(ref.GVK)
	if informer == nil {
		return o.recordFirst.require(ctx, c, x, ref)
	}
	found := read(informer, ref)
	pause(time.Millisecond) // a function is called
	_, err := o.recordFirst.require(ctx, c, x, ref)
	return found, err
}

func TestAReadBeforeItsRecordIsNoticed(t *testing.T) {
	records = recordLast{}
	defer func() { records = recordFirst{} }()
	notice(t, nil, func(*trial) { pause(time.Millisecond) })
}

func TestASweepThatCrossesANewReferenceIsNoticed(t *testing.T) {
	notice(t, soak.References, func(s *trial) { s.operator.engine.SweepInTwoSteps(func() { pause(5 * time.Millisecond) }) })
}

// pause stands for what takes time while others go on.
func pause(d time.Duration) { clock.RealClock{}.Sleep(d) }

// notice soaks until something was missed, for a minute at most, and does something
// again and again meanwhile. The mix of changes is such that the fault has its chance.
func notice(t *testing.T, mix []soak.Weighted, meanwhile func(*trial)) {
	s := newTrial(t, soak.Seed(t))
	defer s.end()
	s.patience = 20 * time.Second
	if mix != nil {
		s.script.Mix = mix
	}
	ctx, cancel := context.WithCancel(t.Context())
	var both sync.WaitGroup
	both.Go(func() {
		for ctx.Err() == nil {
			meanwhile(s)
		}
	})
	defer both.Wait()
	defer cancel()
	s.until = time.Now().Add(time.Minute)
	for s.goesOn() {
		s.change(1 + s.script.Rand.IntN(100))
		s.rest()
	}
	if s.missed == 0 {
		t.Error("nothing was missed in a minute: the test does not see the fault")
	}
	if foundByChecker(t) == s.foundBefore {
		t.Error("the checker did not find what was missed")
	}
}
