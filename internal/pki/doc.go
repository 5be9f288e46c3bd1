// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package pki issues certificates by authorities of our own, and says what is
// wrong with those that were issued: it neither keeps them nor knows the time.
//
// Everything is PEM. Keys are ECDSA on the curve P-256.
package pki
