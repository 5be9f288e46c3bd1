// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"cmp"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer"
)

// ReasonWoken is that of an event which says what an XR was reconciled for.
const ReasonWoken = "Woken"

const (
	actionCompose = "Compose"
	// maxNote is how many bytes of text the API server takes in an event.
	maxNote = 1024
)

// tell sends events for what is new about this run, each of which is a write: what
// woke it, if it changed anything; each result that the run before didn't have;
// each condition that is another than the XR showed. An XR that is as the operator
// left it when it stopped has no news at all.
func (p *pass) tell() {
	last := p.memory.swap(p.key, p.out.Results)
	known := find(p.before.Conditions(), commonv1.TypeSynced)
	if last == nil && known != nil && !p.statusSent {
		return
	}
	p.tellCause()
	for _, result := range news(last, p.out.Results) {
		p.event(eventType(result.Severity), result.Reason, noteOf(result))
	}
	if p.statusShown {
		p.tellConditions()
	}
}

// tellCause names the object, other than the XR itself, whose change had an effect.
func (p *pass) tellCause() {
	if p.cause == nil || len(p.out.Wrote) == 0 && !p.statusSent {
		return
	}
	if p.cause.Object == p.key && p.cause.Kind == p.before.GroupVersionKind() {
		return
	}
	p.event(corev1.EventTypeNormal, ReasonWoken, "Reconciled because of "+p.cause.String())
}

// tellConditions compares what the XR shows now with what it showed before.
func (p *pass) tellConditions() {
	for _, c := range p.conditions {
		was := find(p.before.Conditions(), c.Type)
		isNew := isNews(was, c)
		if c.Type == commonv1.TypeSynced && !isWait(c) {
			// That it is synced again is news however long it waited in between.
			alarmed := p.memory.alarm(p.key, c.Status == corev1.ConditionFalse && c.Reason != commonv1.ReasonReconcilePaused)
			isNew = isNew || alarmed && c.Status == corev1.ConditionTrue
		}
		if isNew {
			p.event(eventTypeOf(c), cmp.Or(c.Reason, c.Type), noteOfCondition(c))
		}
	}
}

func isWait(c commonv1.Condition) bool { return c.Reason == commonv1.ReasonWaitingForWatch }

// isNews reports whether a condition is another than it was, in more than its
// words. That an XR is not synced is news from the start, with its words; the
// other conditions of a new XR are not. Neither is the wait for a watch, nor what
// follows from a fatal result, which is told itself.
func isNews(was *commonv1.Condition, c commonv1.Condition) bool {
	switch {
	case isWait(c), c.Reason == commonv1.ReasonFatalError:
		return false
	case c.Type == commonv1.TypeSynced && c.Status != corev1.ConditionTrue:
		return was == nil || !was.Same(c)
	case c.Type == commonv1.TypeResponsive && was == nil:
		return true // it is not said of a new XR
	case was == nil || isWait(*was):
		return false
	}
	return was.Status != c.Status || was.Reason != c.Reason
}

func eventTypeOf(c commonv1.Condition) string {
	if c.Status == corev1.ConditionTrue || c.Reason == commonv1.ReasonReconcilePaused {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

func noteOfCondition(c commonv1.Condition) string {
	note := fmt.Sprintf("%s is %s", c.Type, c.Status)
	if c.Message != "" {
		note += ": " + c.Message
	}
	return note
}

// event sends one. The recorder takes events for the same that differ in nothing
// but their notes, and drops all notes but the first: so the note is in the
// action, too.
func (p *pass) event(eventType, reason, note string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(note))
	action := fmt.Sprintf("%s-%08x", actionCompose, h.Sum32())
	p.config.Events.Eventf(p.before.Unstructured, nil, eventType, reason, action, "%s", shortened(note, maxNote))
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
