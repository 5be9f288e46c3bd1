// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	"github.com/crosswatch-io/crosswatch/internal/composer"
)

const (
	// maxMessage is how many bytes of an error a condition shows.
	maxMessage = 4096
	// maxNames is how many unready resources a condition names.
	maxNames = 10
)

// conditionsOf returns what is to be said of an XR after a run, sorted by type:
// the engine's own conditions and the functions'. kept are those of either that
// were said last.
func conditionsOf(kept []commonv1.Condition, out composer.Output, err error, generation int64) []commonv1.Condition {
	conditions := customConditions(kept, out, err)
	conditions = append(conditions, synced(kept, err, generation), ready(kept, out, generation))
	slices.SortFunc(conditions, func(a, b commonv1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return conditions
}

// customConditions returns the functions' conditions. A run that got through
// says all there is to say. One that didn't leaves what it did not get to as it
// was; but after a fatal result nobody knows any more whether that holds.
func customConditions(kept []commonv1.Condition, out composer.Output, err error) []commonv1.Condition {
	conditions := slices.Clone(out.Conditions)
	if out.Complete {
		return conditions
	}
	var fatal *composer.FatalError
	isFatal := errors.As(err, &fatal)
	for _, c := range kept {
		switch {
		case commonv1.IsSystemConditionType(c.Type) || find(out.Conditions, c.Type) != nil:
		case isFatal:
			conditions = append(conditions, commonv1.Unknown(c.Type, commonv1.ReasonFatalError,
				"The pipeline ended before this condition was set."))
		default:
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// synced is derived from the run's error. What was observed last is the
// generation that was last composed without one.
func synced(kept []commonv1.Condition, err error, generation int64) commonv1.Condition {
	if err == nil {
		return commonv1.True(commonv1.TypeSynced, commonv1.ReasonReconcileSuccess).WithObservedGeneration(generation)
	}
	reason := commonv1.ReasonReconcileError
	if isWaiting(err) {
		reason = commonv1.ReasonWaitingForWatch
	}
	c := commonv1.False(commonv1.TypeSynced, reason, shortened(err.Error(), maxMessage))
	if last := find(kept, commonv1.TypeSynced); last != nil {
		c.ObservedGeneration = last.ObservedGeneration
	}
	return c
}

// ready is the pipeline's word on the XR, or else follows from its resources. A
// run that didn't get to them leaves it as it was.
func ready(kept []commonv1.Condition, out composer.Output, generation int64) commonv1.Condition {
	if !out.Complete {
		if last := find(kept, commonv1.TypeReady); last != nil {
			return *last
		}
		return commonv1.False(commonv1.TypeReady, commonv1.ReasonCreating, "Nothing has been composed yet.")
	}
	unready := unreadyNames(out.Resources)
	switch {
	case out.Ready != nil && !*out.Ready:
		return commonv1.False(commonv1.TypeReady, commonv1.ReasonCreating, "The pipeline says that this is not ready.").
			WithObservedGeneration(generation)
	case out.Ready == nil && len(unready) > 0:
		return commonv1.False(commonv1.TypeReady, commonv1.ReasonCreating, "Unready resources: "+listed(unready)).
			WithObservedGeneration(generation)
	}
	return commonv1.True(commonv1.TypeReady, commonv1.ReasonAvailable).WithObservedGeneration(generation)
}

func unreadyNames(resources []composer.ComposedStatus) []string {
	var names []string
	for _, one := range resources {
		if !one.Ready {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return names
}

func listed(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

// shortened cuts a text, between characters, to that many bytes.
func shortened(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}

// dated gives each condition the time since when the live ones say the same, or
// else now.
func dated(conditions, live []commonv1.Condition, now time.Time) []commonv1.Condition {
	out := slices.Clone(conditions)
	for i, c := range out {
		out[i].LastTransitionTime = metav1.NewTime(now)
		if last := find(live, c.Type); last != nil && last.Same(c) {
			out[i].LastTransitionTime = last.LastTransitionTime
		}
	}
	slices.SortFunc(out, func(a, b commonv1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return out
}

func find(conditions []commonv1.Condition, conditionType string) *commonv1.Condition {
	i := slices.IndexFunc(conditions, func(c commonv1.Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
