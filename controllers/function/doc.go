// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package function reconciles Functions: when one changes, or a revision of it, the connection to it is closed, so that the next
// call goes to where the function is now, at once, even if it could not be reached a moment ago. The XRs that use the function
// are woken by package composite.
package function
