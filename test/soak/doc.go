// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak changes whatever can change, at random and for long, and holds every
// XR against a model that knows nothing of events: what the XR should say, computed
// from the objects that there are.
//
// It is the script of the changes, and the model. The packages below it try the
// engine alone, against a scripted server that can do tens of thousands of changes
// a second, and the operator as it is installed, on a real API server.
//
// Nothing runs again there because of time, unless it failed: no resync, no poll. So
// an XR that says what it should after everything came to rest was woken for its
// last change, and one that doesn't missed it.
package soak
