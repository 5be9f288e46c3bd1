// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package function reaches composition functions: it calls them over gRPC, and
// runs one step of a pipeline against one of them until the function has been
// shown everything that it asks for.
//
// # Layers
//
// A Caller makes one call. Connections is the Caller that goes over the wire. The
// Runner stands on a Caller and knows about requirements, but nothing about
// connections.
//
// # One call or none
//
// A Request is encoded once. Its tag is a hash of the bytes that are sent, so
// equal tags mean that a function is shown the same, and that is decided by what
// functions see: an object's resource version and managed fields are left out
// (xr.View), since they change by themselves. Objects that informers hold are
// encoded without messages in between (encoder).
//
// Responses keeps what a function answered under its tag until its TTL ends, if
// the answer settled a round: it asks for nothing that the request did not carry.
// As what a step required last time is in its first request, a change of that
// changes the tag, and the function is called. Who asks the same at the same time
// shares a call (flights).
//
// # Rounds
//
// The first request of a step carries what the Composition declares for it
// (bootstrap requirements) and what the step required the last time (seeds), so
// that in a steady state one call is enough. The function is called again if
// its answer asks for a requirement, that is a name with a selector, which the
// request did not carry, or leaves out a seed which it did. A function that
// merely stops asking for what it was shown on its own request has settled, and
// depends on that all the same, and on what earlier rounds showed it on its own
// request: its answer may rest on it. Rounds are compared by selectors and never
// by what they select: an object that changes all the time can't keep a step
// from settling, and its next change arrives as an event.
//
// A seed that has become unreadable is left out of the request. If the function
// still wants it, it asks, and the step fails with the reason.
//
// # Record before read
//
// Everything that a function is shown of the cluster is first recorded as a
// requirement of the XR (Requirer), and then read from the informer that the
// recording put into service. Requirements of an answer that can't be satisfied
// are recorded too, so that the XR wakes when they can be.
//
// # Functions in trouble
//
// A call that may have reached its function is not repeated; one that did not,
// since the function was being replaced, waits for the next connection. A function
// that can't be reached is tried by one call at a time (connection), and one that
// does not answer holds a share of the workers at most (gate): whatever a function
// does, the XRs of others go on. What it answers is checked and limited before
// anything is made of it (validate, decodeRequirements).
//
// # Errors
//
// The text of an error is the same each time for the same cause. It names the
// function and where it was called, the step, and what to do where that isn't
// obvious; it holds no address of a local socket, no port that changes and no
// time of day, since it ends up in a condition of the XR.
package function
