// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer"
)

const (
	actionCompose = "Compose"
	// maxNote is how many bytes of text the API server takes in an event.
	maxNote = 1024
)

// tell sends an event for what is new about this run: each result that the run
// before didn't have, and an error that the XR's condition didn't show yet. An
// XR that is as the operator left it when it stopped has no news at all.
func (p *pass) tell() {
	last := p.memory.swap(p.key, p.out.Results)
	known := find(p.before.Conditions(), commonv1.TypeSynced)
	if last == nil && known != nil && !p.statusSent {
		return
	}
	for _, result := range news(last, p.out.Results) {
		p.event(eventType(result.Severity), result.Reason, noteOf(result))
	}
	if p.err == nil || isWaiting(p.err) {
		return
	}
	if now := synced(nil, p.err, 0); known == nil || !known.Same(now) {
		p.event(corev1.EventTypeWarning, now.Reason, now.Message)
	}
}

func (p *pass) event(eventType, reason, note string) {
	p.config.Events.Eventf(p.before.Unstructured, nil, eventType, reason, actionCompose, "%s", shortened(note, maxNote))
}

// news returns the results, each once, that are not among the last ones.
func news(last map[uint64]struct{}, results []composer.Result) []composer.Result {
	told := map[uint64]struct{}{}
	var out []composer.Result
	for _, result := range results {
		hash := hashOf(result)
		_, old := last[hash]
		_, again := told[hash]
		if !old && !again {
			told[hash] = struct{}{}
			out = append(out, result)
		}
	}
	return out
}

func eventType(s composer.Severity) string {
	if s == composer.Normal {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

func noteOf(r composer.Result) string {
	if r.Step == "" {
		return r.Message
	}
	return "Pipeline step \"" + r.Step + "\": " + r.Message
}
