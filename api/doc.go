// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package api groups the packages of the kinds that Crosswatch serves, one package a group and version, and of the contract
// with functions. They hold types, defaults and deep copies, and nothing that acts. The package itself holds only tests of
// the CRDs that are generated from those types.
package api
