// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package v1

// Kinds of this group.
const (
	KindCompositeResourceDefinition = "CompositeResourceDefinition"
	KindComposition                 = "Composition"
	KindCompositionRevision         = "CompositionRevision"
)

// Labels.
const (
	// LabelComposite is on an XR and on all that it composes, nested XRs included: the name of the XR at the root.
	LabelComposite = "crossplane.io/composite"
	// LabelCompositionName names the Composition of a CompositionRevision.
	LabelCompositionName = "crossplane.io/composition-name"
	// LabelCompositionHash is the start of the content hash of a CompositionRevision, as much as a label holds.
	LabelCompositionHash = "crossplane.io/composition-hash"
)

// Annotations.
const (
	// AnnotationPaused stops the reconciling of an object while it is "true".
	AnnotationPaused = "crossplane.io/paused"
	// AnnotationReconcileRequestedAt asks for a reconcile each time its value, a token, changes.
	AnnotationReconcileRequestedAt = "crossplane.io/reconcile-requested-at"
	// AnnotationPollInterval is a Go duration after which an XR is reconciled again.
	AnnotationPollInterval = "crossplane.io/poll-interval"
	// AnnotationCompositionResourceName is the name of a composed resource in the desired state.
	AnnotationCompositionResourceName = "crossplane.io/composition-resource-name"
)

// Finalizers.
const (
	// FinalizerDefinition is on an XRD until its XRs and its CRD are gone.
	FinalizerDefinition = "defined.apiextensions.crossplane.io"
	// FinalizerComposite is on an XR until its controller has let go of it.
	FinalizerComposite = "composite.apiextensions.crossplane.io"
)

// Field owners of server-side applies.
const (
	// FieldOwnerComposite owns what we set of an XR.
	FieldOwnerComposite = "apiextensions.crossplane.io/composite"
	// FieldOwnerComposedPrefix and a hash that tells XRs apart own what an XR sets of a composed resource.
	FieldOwnerComposedPrefix = "apiextensions.crossplane.io/composed/"
)
