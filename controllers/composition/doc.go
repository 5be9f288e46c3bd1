// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package composition makes CompositionRevisions of Compositions, and says which of them can be used.
//
// There are two controllers. That of Compositions keeps a snapshot of each content that a Composition has had; which snapshot
// is the newest is said by its number, which rises again when the Composition returns to an earlier content. That of
// CompositionRevisions sets the condition ValidPipeline, which depends on the functions that the pipeline names. XRs are woken by
// package composite, on the events that bring these changes into the cache: woken earlier, they would read what was before.
package composition
