// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak changes whatever can change, at random and for long, and holds every
// XR against a model that knows nothing of events: what the XR should say, computed
// from the objects that there are.
//
// Nothing here runs again because of time: no resync, no retry, no poll. So an XR
// that says what it should after everything came to rest was woken for its last
// change, and one that doesn't missed it.
package soak
