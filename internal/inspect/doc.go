// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package inspect shows people what the functions of a pipeline are asked and
// what they answer: a line of JSON a round, written to a file or to whoever
// listens on a unix socket.
//
// # Nothing waits for it
//
// Inspect puts a round into a queue, which is bounded in rounds and in bytes,
// and returns. If the queue is full the oldest rounds go, so that who looks late
// sees what happened last; how many went is counted, and told in the stream where
// they are missing. All else (redacting, encoding, writing) is done by the one
// goroutine of Start. A destination that fails is tried again and again, and
// never ends the operator.
//
// # No secret leaves
//
// The function contract holds bytes only where it holds secrets: credentials and
// connection details. No bytes are written at all, whichever message they are in.
// Objects are searched for Secrets at any depth. The encoded messages are
// shared with the pipeline and are not changed: what is written is a redacted
// picture of what they decode to.
package inspect
