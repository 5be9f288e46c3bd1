// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the documentation to what the code does.
package docs
