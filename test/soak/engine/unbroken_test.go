// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !brokenordering

package engine

func newOrdering() ordering { return recordFirst{} }
