// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package composite reconciles composite resources (XRs). One Reconciler serves
// one XR kind; controllers/definition makes it when the kind is established.
//
// A reconcile goes through these phases, a file each:
//
//	release   an XR that is being deleted: no function runs, the finalizer goes
//	pause     an XR that is paused: a condition, nothing else
//	choose    its Composition and revision
//	claim     the XR: label, finalizer, and what was chosen, written onto it
//	compose   see internal/composer; ends with Track or Fail
//	status    what functions and engine have to say, in one write
//	events    what is new about that
//	requeue   when to look again, although nothing has changed by then
//
// Every write is a server-side apply, sent only if it changes something, and the
// XR's controller is told of it. Requirements are kept in the tracker only:
// nothing here writes them anywhere.
//
// What changes besides XRs and what they depend on, revisions and functions,
// wakes XRs by way of SetupWake.
package composite
