// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine starts and stops XR controllers and watches while the operator
// runs. One watch serves a kind, however many controllers need it.
//
// # Why no change is missed
//
// A change of an object is missed if an XR depends on the object, did not see the
// change in its last run, and is not going to run. That can't be, given what is
// ordered before what:
//
//	(a) An informer puts a change into its store, and then delivers the event
//	    (client-go's, see store.Informer). Deliveries come one at a time.
//	(b) An event first reads who uses the watch (watch.users), and then asks
//	    each user's tracker for dependants, under the tracker's lock.
//	(c) A run records a reference in the tracker, and then registers its
//	    controller with the watch; both under Engine.mu (record). Only after
//	    that is it told what to read from.
//	(d) A sweep takes a controller off a watch, or a watch out of service, only
//	    if the tracker has no reference to the kind; it looks and acts under one
//	    hold of Engine.mu (Sweep).
//	(e) A reference leaves the tracker only by the XR's own run: at its end, if
//	    the run did not ask for it, or when the XR is gone.
//	(f) The queue holds an XR that is added while it runs until that run has
//	    ended, and then has it run again. It is not asked for what it was asked
//	    already (pending), which a run forgets before anything is read for it.
//
// Say that a run recorded a reference, read, and ended with the reference in the
// XR's record; and that a change was stored by the informer that it read from.
//
//   - Stored before the read: the run saw it.
//   - Stored after the read: by (a) it is delivered later still, and so after the
//     record and the registration (c). By (d) and (e) both are still there, so
//     that (b) finds the XR, and by (f) it runs again: if the queue is not asked,
//     the run for which it was asked has not begun to read.
//
// What remains is that a controller is stopped and started again, which runs each of
// its XRs anew, and that the informer itself is replaced: its watch failed, its kind
// went and came, or nothing referred to it for a while.
//
//   - A watch has no informer to read from (watch.live is false) until a new one
//     has listed everything. activate publishes that under Engine.mu, and then
//     wakes every XR that refers to the kind. By (c) that is each one that read
//     from an earlier informer, and each that gave up waiting.
//   - Those that wait in that moment are left out. They are counted in
//     watch.waiting under Engine.mu, and take the new informer under the same
//     hold under which they leave: so they read it, after (c).
//   - An event that the new informer delivers before activate finds the XRs like
//     any other. What it holds by then is read by those whom activate wakes.
//   - If a watch fails, fail publishes the state under Engine.mu before it wakes
//     the XRs, so that their runs say what is wrong; those that wait see it
//     under the same hold.
//
// An XR's own events are held against what its last run started from. Begin says
// that nothing is known before it reads the XR, and what the view is after; both
// under Controller.mu, where an event asks. So an event is passed over only if a
// run started from exactly what it tells. When a watch of XRs becomes live, all
// XRs are enqueued, and those that are remembered and gone: so deletions that
// nobody saw are found.
//
// How far XRs are slowed (circuit.go), in what order they run (priority.go) and how
// many at once (busy.go) changes when a run comes, never whether.
//
// # Locks
//
// The order is Engine.mu, then Controller.mu or a tracker's own; under those of
// pending, causes and sights, none is taken. No lock is held while a request, a sync
// or a channel is waited for.
package engine
