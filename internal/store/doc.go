// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the objects of one kind, as an informer delivers them,
// for everything that composes or requires the kind.
//
// An Informer is fed by one list and one watch through the dynamic client. What
// it returns is shared with every other reader and with the informer itself:
// read it, copy it, never change it.
//
// Order matters to those who build on it. An object is in the store before its
// event is delivered; so whoever makes sure to hear of events first, and reads
// second, misses nothing.
package store
