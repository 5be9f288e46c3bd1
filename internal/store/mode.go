// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package store

// Mode says how much an Informer keeps of each object.
type Mode string

// Full keeps the whole object, but for the managed fields of others.
const Full Mode = "Full"
