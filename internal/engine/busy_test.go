// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/crosswatch-io/crosswatch/internal/engine"
)

func TestAnXRThatRanJustBeforeWaitsForOthersOfItsLikeAndNotForLong(t *testing.T) {
	busy := engine.NewBusy()
	var leave []func()
	for range busy.Slots() {
		leave = append(leave, busy.Enter(t.Context()))
	}
	begun := time.Now()
	busy.Enter(t.Context())()
	if took := time.Since(begun); took < engine.Courtesy {
		t.Errorf("it waited %s, want %s", took, engine.Courtesy)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	busy.Enter(ended)() // returns although nobody leaves

	leave[0]()
	leave[0] = busy.Enter(t.Context())
	if got := busy.Taken(); got != busy.Slots() {
		t.Errorf("%d of %d slots are taken", got, busy.Slots())
	}
	for _, l := range leave {
		l()
	}
	if got := busy.Taken(); got != 0 {
		t.Errorf("%d slots are taken and nobody runs", got)
	}
}
