// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !brokenordering

package soak

func newOrdering() ordering { return recordFirst{} }
