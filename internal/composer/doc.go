// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package composer takes one composite resource (XR) through its pipeline:
//
//	observe     what exists of the XR's composed resources
//	call        each step's function, with what it is to see
//	render      what the functions desire into objects that can be applied
//	admit       each of them: recorded as a dependency, its kind's watch in service
//	collect     what exists and is no longer desired
//	reference   what exists or is about to, on the XR, before it is created
//	apply       what differs
//
// Each phase is a file. A phase that fails ends the run; within admit, collect
// and apply each resource stands for itself, so that one that is refused hides
// no other.
//
// Everything is recorded before it is read or applied (see Recorder), and read
// from the informers that recording returns. What those return is shared: it is
// read and copied here, never changed.
//
// An Applier sends a server-side apply only if it would make a difference, see
// its comment for how it tells.
package composer
