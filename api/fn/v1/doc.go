// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package fnv1 is the contract between the engine and functions: a gRPC service with one method. All but this file and the
// tests is generated from run_function.proto.
//
// A Go program can't link this package together with a function SDK, since both register the same protobuf names.
package fnv1
