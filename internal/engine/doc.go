// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine starts and stops XR controllers and watches while the
// operator runs.
//
// One watch serves a kind, however many controllers need it. Three facts make
// sure that no change is missed:
//
//   - A reference is recorded and its controller registered with the kind's
//     watch under Engine.mu, before Require or Depend returns what to read
//     from. An informer puts an object into its store before it delivers the
//     event, and an event looks up registrations and references when it is
//     delivered. So a change is either in what is read after recording, or its
//     event finds the reference.
//   - Sweep decides under the same lock that a watch isn't needed, and takes it
//     out of service there. A reference recorded before keeps the watch; one
//     recorded after finds none in service and starts another.
//   - When a watch becomes Active, every XR that refers to the kind is woken,
//     but for those that wait for it in that moment and read right after.
//     Both sides decide under Engine.mu, so an XR that gave up waiting is woken.
//
// Lock order: Engine.mu, then Controller.mu or a tracker's own. No lock is held
// while a request, a sync or a channel is waited for.
package engine
