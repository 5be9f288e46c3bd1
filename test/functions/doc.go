// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

// Package functions serves composition functions for tests: real gRPC servers
// around a handler, that count the calls they get and keep the requests.
//
//	function := functions.Serve(t, func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
//		rsp := respond.To(req)
//		respond.Require(rsp, "settings", respond.Selector{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "settings"})
//		return rsp, nil
//	}, functions.Options{})
//	// function.Target() goes into a Function or a FunctionRevision.
//	// function.Calls(xr) says how often it ran for one XR.
//
// Package respond builds the responses, package certificates makes what mutual
// TLS needs.
package functions
