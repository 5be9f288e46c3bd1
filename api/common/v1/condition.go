// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is one aspect of an object's state, as last observed.
type Condition struct {
	// Type of the condition; at most one of each type applies to an object.
	Type string `json:"type"`

	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`

	// LastTransitionTime is when this condition last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// Reason for the status, one word that programs can compare.
	Reason string `json:"reason"`

	// Message for people: what happened, to which object, and why.
	// +optional
	Message string `json:"message,omitempty"`

	// ObservedGeneration is the metadata.generation that the condition was derived from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// Equal reports whether both say the same. The transition time is not compared, since it follows from the rest.
func (c Condition) Equal(other Condition) bool {
	return c.Same(other) && c.ObservedGeneration == other.ObservedGeneration
}

// Same reports whether both say the same of possibly different generations: going from one to the other is no transition.
func (c Condition) Same(other Condition) bool {
	return c.Type == other.Type && c.Status == other.Status && c.Reason == other.Reason && c.Message == other.Message
}

// WithMessage returns a copy with that message.
func (c Condition) WithMessage(message string) Condition {
	c.Message = message
	return c
}

// WithObservedGeneration returns a copy derived from that generation.
func (c Condition) WithObservedGeneration(generation int64) Condition {
	c.ObservedGeneration = generation
	return c
}

// ConditionedStatus is the part of a status that holds conditions, at most one of each type.
type ConditionedStatus struct {
	// Conditions of the object.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// GetCondition returns the condition of that type; its status is Unknown where there is none.
func (s *ConditionedStatus) GetCondition(conditionType string) Condition {
	if i := s.index(conditionType); i >= 0 {
		return s.Conditions[i]
	}
	return Condition{Type: conditionType, Status: corev1.ConditionUnknown}
}

// SetConditions puts each condition in the place of the one of its type, or at the end where there is none. A condition whose
// status, reason and message are as before keeps its transition time; one that changes and names no time gets the current one.
// It changes the status in place: the object must not come from a shared cache.
func (s *ConditionedStatus) SetConditions(conditions ...Condition) {
	for _, c := range conditions {
		i := s.index(c.Type)
		switch {
		case i >= 0 && s.Conditions[i].Same(c):
			c.LastTransitionTime = s.Conditions[i].LastTransitionTime
		case c.LastTransitionTime.IsZero():
			c.LastTransitionTime = metav1.Now()
		}
		if i < 0 {
			s.Conditions = append(s.Conditions, c)
			continue
		}
		s.Conditions[i] = c
	}
}

func (s *ConditionedStatus) index(conditionType string) int {
	return slices.IndexFunc(s.Conditions, func(c Condition) bool { return c.Type == conditionType })
}
