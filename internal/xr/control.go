// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package xr

import (
	"time"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
)

// Paused reports whether the XR must not be reconciled for now.
func (x XR) Paused() bool {
	return x.annotation(v1.AnnotationPaused) == "true"
}

// ReconcileRequestedAt returns the token of the last reconcile that somebody
// requested by annotation, or "".
func (x XR) ReconcileRequestedAt() string {
	return x.annotation(v1.AnnotationReconcileRequestedAt)
}

// LastHandledReconcileAt returns the token of the last requested reconcile that
// was done, or "".
func (x XR) LastHandledReconcileAt() string {
	return text(x.Object, "status", "lastHandledReconcileAt")
}

// SetLastHandledReconcileAt acknowledges a requested reconcile by its token.
func (x XR) SetLastHandledReconcileAt(token string) {
	if token == "" {
		x.set(nil, "status", "lastHandledReconcileAt")
		return
	}
	x.set(token, "status", "lastHandledReconcileAt")
}

// PollInterval returns after how long the XR wants to be reconciled again though
// nothing changed, and whether it wants that at all. An interval that is not a
// positive duration counts as none.
func (x XR) PollInterval() (time.Duration, bool) {
	interval, err := time.ParseDuration(x.annotation(v1.AnnotationPollInterval))
	if err != nil || interval <= 0 {
		return 0, false
	}
	return interval, true
}

// CompositeLabel returns what the label of that name has for its value on
// everything that the XR composes: its value on the XR itself or, where the XR
// has none yet, the XR's name.
func (x XR) CompositeLabel() string {
	if root := text(x.Object, "metadata", "labels", v1.LabelComposite); root != "" {
		return root
	}
	return x.GetName()
}

func (x XR) annotation(key string) string {
	return text(x.Object, "metadata", "annotations", key)
}
