// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package watchserver serves kinds as an API server does, from memory, so that a
// test changes objects far faster than a real one lets it, and says what each
// list and watch meets: a kind that is gone, a refusal, a cut, a compaction, or
// no answer.
//
// It speaks HTTP and JSON over loopback to real clients: discovery, list, watch.
// Writes are calls of Go methods. What it says of an object is what a real API
// server would: one resource version counts for all kinds, a write that changes
// nothing is none, a watch continues from any version that was not compacted,
// and who asks for an older one is told 410.
package watchserver
