// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package dependency holds what every composite resource (XR) depends on: what
// it composes, and what its pipeline's functions asked to read. It answers the
// question that each event of a watched kind poses: which XRs must reconcile?
//
// A Tracker is a plain data structure: values in, values out. It has no client,
// goroutine, clock or logger. One Tracker serves one XR controller; a Registry
// keeps them by the controller's name.
//
// # References
//
// A Reference with a name matches the one object of its kind that has exactly
// that namespace and name. An empty namespace addresses a cluster-scoped
// object; it is not a wildcard. The object need not exist: its creation is what
// the reference waits for.
//
// A Reference without a name matches by labels: every object that carries all
// of them, in the reference's namespace or, where that is empty, in every
// namespace. Without labels it matches everything of its kind, within the same
// limits of namespace.
//
// Whether an object matches depends on how it looks at that moment. A caller
// that handles an update asks for the dependants of the old object and of the
// new one, since an object that stops matching matters as much as one that
// starts.
//
// # Records
//
// The record of an XR has three parts, each of which is live, that is found by
// Dependants and counted by HasKind, GVKs and Stats, from the moment it is
// written:
//
//   - what the last successful run left (Track),
//   - what the last run left if it failed (Fail),
//   - what the run in progress recorded beyond those (Require, Depend).
//
// A successful run ends with Track: what it passes is the whole record from then
// on. A failed run ends with Fail: what it recorded replaces what an earlier
// failed run left, and the last success stays. So an XR that fails because of an
// object wakes when that object changes, and a record can't grow without bound.
// Forget removes the record. The tracker keeps nothing else of an XR, and
// nothing of a kind that no record refers to.
//
// The caller ends each run of an XR before it starts the next, and forgets an XR
// only between two runs of it. Beyond that every method may be called at any
// time, from any goroutine, for any XR.
//
// # Structure
//
// Everything is a row of a table, and every arrow a number of four bytes. What
// repeats is one row, whoever refers to it: a record lists entries, and the same
// entries lead back to it.
//
//	          records                            entries
//	XR ─────▶ composed: entries ───────────────▶ kind, namespace, name   ◀── an object's name
//	          required: step, name, entry ─────▶ kind, namespace, labels ◀─┐
//	           ▲                                 holders                   │
//	           │                                    │                      │
//	           ├────────────────────────────────────┘                      │
//	           │                                                           │
//	          kinds                              pairs                     │
//	          dependants                         key, value: entries ──────┘◀── an object's labels
//
//	holders, dependants, entries of a pair: the only one, or the number of a set
//	namespaces, names, steps, keys, values, selectors: numbers of texts
//
// Five kinds of row, and what finds them:
//
//   - a text (text.go): by its content,
//   - a kind (kind.go): by its group, version and kind,
//   - an entry (entry.go), which is one distinct reference: by its kind, and by
//     the texts of its namespace and of its name or labels,
//   - a pair (pair.go): by its kind, and by the texts of its namespace, key and
//     value. Each entry by labels is filed under the one of its pairs under which
//     the fewest others are,
//   - a record (record.go): by the XR.
//
// A table (table.go) gives rows numbers and finds them by content. A group
// (group.go) is what one number leads to; if that is several, a set (set.go) has
// them.
//
// index.go makes and removes entries, link.go leads from them to records;
// requirement.go turns what a run recorded into numbers and back. tracker.go has
// the lock and what changes records, search.go the questions that events pose,
// stats.go and footprint.go the counts.
//
// # Cost
//
// Memory is linear in the references held, and independent of how many objects
// they match. Rows and sets that were released are used again, and with the last
// record all memory is given back. Dependants looks up the object's name and each
// of its labels, then visits the XRs found: selectors that share no label with the
// object cost nothing.
//
// A change holds the lock for as long as the references of its own XR take, and a
// search that finds many XRs for a batch of them. Tables grow without being copied
// (of a million rows only the directory of pages is). A run that records what the
// last one recorded, in the same order, takes no more than the lock that readers
// share.
package dependency
