// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import corev1 "k8s.io/api/core/v1"

// Conditions of composite resources.
const (
	// TypeSynced says whether the last reconcile did all that it had to.
	TypeSynced = "Synced"
	// TypeReady says whether the object can be used.
	TypeReady = "Ready"
	// TypeResponsive says whether changes are answered at once, or are held back because something keeps undoing our writes.
	TypeResponsive = "Responsive"
	// TypeHealthy says whether an object, such as a Function, works as it should.
	TypeHealthy = "Healthy"
	// TypeUpToDate is reserved: functions can't set it.
	TypeUpToDate = "UpToDate"
)

// Conditions of definitions, compositions and functions.
const (
	// TypeEstablished says whether an XRD's kind is served and its XRs are reconciled.
	TypeEstablished = "Established"
	// TypeOffered says whether an XRD's claim kind is offered; it never is.
	TypeOffered = "Offered"
	// TypeValidPipeline says whether the functions of a CompositionRevision can compose.
	TypeValidPipeline = "ValidPipeline"
	// TypeInstalled says whether a Function has a revision in force.
	TypeInstalled = "Installed"
	// TypeRevisionHealthy says whether a FunctionRevision's package is usable.
	TypeRevisionHealthy = "RevisionHealthy"
	// TypeRuntimeHealthy says whether a FunctionRevision's server runs.
	TypeRuntimeHealthy = "RuntimeHealthy"
	// TypeConverged says whether the dependencies of every known XR are tracked since the operator started.
	TypeConverged = "Converged"
	// TypeWatching says whether every kind that XRs depend on is watched, and their own kinds.
	TypeWatching = "Watching"
)

// Reasons of Synced. Watching has the last one, too.
const (
	ReasonReconcileSuccess = "ReconcileSuccess"
	ReasonReconcileError   = "ReconcileError"
	ReasonReconcilePaused  = "ReconcilePaused"
	// ReasonWaitingForWatch ends a run whose watch of a required or composed kind is still starting; the watch wakes the XR.
	ReasonWaitingForWatch = "WaitingForWatch"
)

// Reasons of Ready.
const (
	ReasonAvailable = "Available"
	ReasonCreating  = "Creating"
	ReasonDeleting  = "Deleting"
)

// Reasons of Responsive.
const (
	ReasonWatchCircuitClosed = "WatchCircuitClosed"
	ReasonWatchCircuitOpen   = "WatchCircuitOpen"
)

// Reasons of Established and Offered.
const (
	ReasonWatchingCompositeResource    = "WatchingCompositeResource"
	ReasonTerminatingCompositeResource = "TerminatingCompositeResource"
	// ReasonInvalidDefinition is that of an XRD whose CRD can't be made, or is refused by the API server.
	ReasonInvalidDefinition = "InvalidDefinition"
	// ReasonClaimsNotOffered is that of an XRD that names a claim kind.
	ReasonClaimsNotOffered = "ClaimsNotOffered"
)

// Reasons of ValidPipeline, and of custom conditions that a pipeline no longer reached.
const (
	ReasonValidPipeline       = "ValidPipeline"
	ReasonMissingCapabilities = "MissingCapabilities"
	ReasonFatalError          = "FatalError"
)

// Reasons of Installed.
const (
	ReasonActivePackageRevision = "ActivePackageRevision"
	// ReasonInactivePackageRevision is also that of RuntimeHealthy where the revision is not to run.
	ReasonInactivePackageRevision = "InactivePackageRevision"
	// ReasonUnpackingPackage is that of a Function of whose image no revision could be made yet.
	ReasonUnpackingPackage = "UnpackingPackage"
	// ReasonDevelopmentRuntime is that of a Function that somebody runs by hand. Healthy has it, too.
	ReasonDevelopmentRuntime = "DevelopmentRuntime"
)

// Reasons of Healthy and RevisionHealthy.
const (
	ReasonHealthyPackageRevision       = "HealthyPackageRevision"
	ReasonUnhealthyPackageRevision     = "UnhealthyPackageRevision"
	ReasonUnknownPackageRevisionHealth = "UnknownPackageRevisionHealth"
)

// Reasons of RuntimeHealthy.
const (
	ReasonHealthyPackageRuntime   = "HealthyPackageRuntime"
	ReasonUnhealthyPackageRuntime = "UnhealthyPackageRuntime"
)

// Reasons of Converged and Watching.
const (
	ReasonTracked  = "Tracked"
	ReasonStarting = "Starting"
	// ReasonNotEstablished is that of an XRD whose XRs nobody reconciles, since its kind is not served, or not by its CRD.
	ReasonNotEstablished = "NotEstablished"
	// ReasonWatchesActive is that of Watching where nothing is missing. Where watches only start, it is WaitingForWatch.
	ReasonWatchesActive = "WatchesActive"
	ReasonWatchesFailed = "WatchesFailed"
)

// IsSystemConditionType reports whether the engine alone sets conditions of that type on an XR.
func IsSystemConditionType(conditionType string) bool {
	switch conditionType {
	case TypeSynced, TypeReady, TypeResponsive, TypeHealthy, TypeUpToDate:
		return true
	}
	return false
}

// True is a condition of that type that holds, for that reason.
func True(conditionType, reason string) Condition {
	return Condition{Type: conditionType, Status: corev1.ConditionTrue, Reason: reason}
}

// False is a condition of that type that does not hold, for that reason.
func False(conditionType, reason, message string) Condition {
	return Condition{Type: conditionType, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown is a condition of that type of which nothing is known, for that reason.
func Unknown(conditionType, reason, message string) Condition {
	return Condition{Type: conditionType, Status: corev1.ConditionUnknown, Reason: reason, Message: message}
}
