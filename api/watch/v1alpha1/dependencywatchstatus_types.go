// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// KindDependencyWatchStatus is the kind of DependencyWatchStatus.
const KindDependencyWatchStatus = "DependencyWatchStatus"

// NameCluster is the name of the one DependencyWatchStatus that counts for all XR controllers together. An XRD's name has a dot,
// so that no XR controller's object can have this name.
const NameCluster = "cluster"

// CompositeCounts counts XRs.
type CompositeCounts struct {
	// Known is how many XRs there are.
	Known int64 `json:"known"`

	// Tracked is how many of them have dependencies recorded, by a reconcile that succeeded or one that failed.
	Tracked int64 `json:"tracked"`
}

// ReferenceCounts counts references, each once for every XR that holds it.
type ReferenceCounts struct {
	// Total is Composed and Required together.
	Total int64 `json:"total"`

	// Composed is how many references are to composed resources.
	Composed int64 `json:"composed"`

	// Required is how many references are to resources that functions required.
	Required int64 `json:"required"`

	// ByName is how many of Total name one object.
	ByName int64 `json:"byName"`

	// ByLabels is how many of Total select objects by labels, or every object of a kind.
	ByLabels int64 `json:"byLabels"`
}

// WatchCounts counts watches, one a kind.
type WatchCounts struct {
	// Wanted is how many kinds references need a watch of.
	Wanted int64 `json:"wanted"`

	// Active is how many of these watches deliver events.
	Active int64 `json:"active"`

	// Failed is how many of these watches can't be started, or failed; each is retried. Those that only start are neither.
	Failed int64 `json:"failed"`
}

// WatchState is that of the watch of a kind.
type WatchState string

// States of a watch.
const (
	WatchStarting    WatchState = "Starting"
	WatchActive      WatchState = "Active"
	WatchForbidden   WatchState = "Forbidden"
	WatchNotFound    WatchState = "NotFound"
	WatchUnwatchable WatchState = "Unwatchable"
	WatchFailed      WatchState = "Failed"
	WatchStopping    WatchState = "Stopping"
)

// KindStatus is one kind that XRs depend on.
type KindStatus struct {
	// APIVersion of the kind.
	APIVersion string `json:"apiVersion"`

	// Kind of the objects.
	Kind string `json:"kind"`

	// References to objects of the kind, each once for every XR that holds it.
	References int64 `json:"references"`

	// Dependants is how many XRs hold them.
	Dependants int64 `json:"dependants"`

	// Watch is the state of the kind's watch; there is none while no watch is in service.
	// +optional
	Watch WatchState `json:"watch,omitempty"`

	// Store says how much the watch keeps of each object, once it is active.
	// +optional
	Store string `json:"store,omitempty"`

	// Objects is how many objects of the kind the watch holds, whether XRs depend on them or not.
	// +optional
	Objects int64 `json:"objects"`

	// Message says why the watch is not active, and what would help. It ends in an ellipsis where it was too long.
	// +optional
	Message string `json:"message,omitempty"`
}

// SharedWatch is one watch that XR controllers share.
type SharedWatch struct {
	// APIVersion of the kind.
	APIVersion string `json:"apiVersion"`

	// Kind of the objects.
	Kind string `json:"kind"`

	// State of the watch.
	State WatchState `json:"state"`

	// Objects that the watch holds.
	Objects int64 `json:"objects"`

	// Controllers is how many XR controllers use the watch.
	Controllers int64 `json:"controllers"`

	// Message says why the watch is not active, and what would help. It ends in an ellipsis where it was too long.
	// +optional
	Message string `json:"message,omitempty"`
}

// OperatorInfo is who counts.
type OperatorInfo struct {
	// Version of the operator.
	Version string `json:"version"`

	// Leader is the identity of the replica that does the work: its host's name, and what makes it unique.
	Leader string `json:"leader"`
}

// DependencyWatchStatusStatus is what one XR controller's tracker holds, in numbers. Each publication replaces it as a whole,
// whoever has written to it, so that none of it can be from another time than LastPublishedTime.
// +structType=atomic
type DependencyWatchStatusStatus struct {
	commonv1.ConditionedStatus `json:",inline"`

	// CompositeType is the XR kind; the object of all controllers together has none.
	// +optional
	CompositeType *v1.TypeReference `json:"compositeType,omitempty"`

	// Composites counts XRs.
	// +optional
	Composites CompositeCounts `json:"composites"`

	// References counts what the XRs depend on.
	// +optional
	References ReferenceCounts `json:"references"`

	// Watches counts the watches that the references need.
	// +optional
	Watches WatchCounts `json:"watches"`

	// Kinds that XRs depend on, those with most references first.
	// +listType=atomic
	// +optional
	Kinds []KindStatus `json:"kinds,omitempty"`

	// KindsOmitted is how many more kinds there are than Kinds lists.
	// +optional
	KindsOmitted int64 `json:"kindsOmitted,omitempty"`

	// SharedWatches are all watches there are, those that are not active first; only in the object of all controllers together.
	// +listType=atomic
	// +optional
	SharedWatches []SharedWatch `json:"sharedWatches,omitempty"`

	// SharedWatchesOmitted is how many more watches there are than SharedWatches lists.
	// +optional
	SharedWatchesOmitted int64 `json:"sharedWatchesOmitted,omitempty"`

	// Objects is how many objects all watches hold; only in the object of all controllers together.
	// +optional
	Objects int64 `json:"objects,omitempty"`

	// TrackerBytes is about how much memory the records of what XRs depend on take; only in the object of all controllers
	// together. It is rounded.
	// +optional
	TrackerBytes int64 `json:"trackerBytes,omitempty"`

	// Operator is who counted; only in the object of all controllers together.
	// +optional
	Operator *OperatorInfo `json:"operator,omitempty"`

	// LastPublishedTime is when this was written. What changes is written after the status interval, and what does not every
	// five minutes: an object that is much older has nobody who writes it.
	// +optional
	LastPublishedTime *metav1.Time `json:"lastPublishedTime,omitempty"`
}

// DependencyWatchStatus shows what the XRs of one kind depend on, in numbers. It is named after the XRD, and made by the
// operator for people to read: nothing that the operator does with XRs follows from it.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=crosswatch,shortName=dws,path=dependencywatchstatuses
// +kubebuilder:printcolumn:name="COMPOSITES",type="integer",JSONPath=".status.composites.tracked"
// +kubebuilder:printcolumn:name="REFERENCES",type="integer",JSONPath=".status.references.total"
// +kubebuilder:printcolumn:name="WATCHES",type="integer",JSONPath=".status.watches.active"
// +kubebuilder:printcolumn:name="CONVERGED",type="string",JSONPath=".status.conditions[?(@.type=='Converged')].status"
// +kubebuilder:printcolumn:name="PUBLISHED",type="date",JSONPath=".status.lastPublishedTime"
// +kubebuilder:printcolumn:name="COMPOSED",type="integer",JSONPath=".status.references.composed",priority=1
// +kubebuilder:printcolumn:name="REQUIRED",type="integer",JSONPath=".status.references.required",priority=1
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.watches.failed",priority=1
type DependencyWatchStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Status DependencyWatchStatusStatus `json:"status,omitempty"`
}

// DependencyWatchStatusList is a list of DependencyWatchStatuses.
// +kubebuilder:object:root=true
type DependencyWatchStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DependencyWatchStatus `json:"items"`
}
