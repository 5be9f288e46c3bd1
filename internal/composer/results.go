// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package composer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// Severity of a result.
type Severity uint8

// The severities.
const (
	Normal Severity = iota
	Warning
)

// Reasons of results that name none, or are the engine's own.
const (
	ReasonComposeResources  = "ComposeResources"
	ReasonNamespaceOverride = "NamespaceOverridden"
	ReasonInvalidResource   = "InvalidResource"
	ReasonInvalidCondition  = "InvalidCondition"
)

// A Result is something that happened in a run and that somebody should know.
// Equal results of two runs mean that it is still so.
type Result struct {
	Severity Severity
	Reason   string
	Message  string
	// Step of the pipeline that returned the result; empty for the engine's own.
	Step string
	// Target is whom the function wants to tell.
	Target fnv1.Target
}

func (r *run) warn(reason, format string, args ...any) {
	r.out.Results = append(r.out.Results, Result{Severity: Warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// takeResults keeps a response's conditions and results. Conditions come first:
// those of a response whose result is fatal are kept, too.
func (r *run) takeResults(step string, response *fnv1.RunFunctionResponse) error {
	for _, c := range response.GetConditions() {
		r.takeCondition(step, c)
	}
	for _, result := range response.GetResults() {
		if result.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return &FatalError{Step: step, Message: result.GetMessage()}
		}
		severity := Warning
		if result.GetSeverity() == fnv1.Severity_SEVERITY_NORMAL {
			severity = Normal
		}
		r.out.Results = append(r.out.Results, Result{
			Severity: severity,
			Reason:   cmp.Or(result.GetReason(), ReasonComposeResources),
			Message:  result.GetMessage(),
			Step:     step,
			Target:   result.GetTarget(),
		})
	}
	return nil
}

// takeCondition keeps a condition, in the place of an earlier step's.
func (r *run) takeCondition(step string, c *fnv1.Condition) {
	if c.GetType() == "" || commonv1.IsSystemConditionType(c.GetType()) {
		r.warn(ReasonInvalidCondition, "pipeline step %q returned condition %q, which functions can't set", step, c.GetType())
		return
	}
	condition := commonv1.Condition{
		Type: c.GetType(), Status: statusOf(c.GetStatus()), Reason: c.GetReason(), Message: c.GetMessage(),
	}
	i, found := slices.BinarySearchFunc(r.out.Conditions, c.GetType(), func(have commonv1.Condition, t string) int {
		return strings.Compare(have.Type, t)
	})
	if found {
		r.out.Conditions[i] = condition
		return
	}
	r.out.Conditions = slices.Insert(r.out.Conditions, i, condition)
}

func statusOf(s fnv1.Status) corev1.ConditionStatus {
	switch s {
	case fnv1.Status_STATUS_CONDITION_TRUE:
		return corev1.ConditionTrue
	case fnv1.Status_STATUS_CONDITION_FALSE:
		return corev1.ConditionFalse
	case fnv1.Status_STATUS_CONDITION_UNKNOWN, fnv1.Status_STATUS_CONDITION_UNSPECIFIED:
	}
	return corev1.ConditionUnknown
}
