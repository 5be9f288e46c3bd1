#!/usr/bin/env bash
# Copyright The Crosswatch Authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks the function contract and generates its Go code with buf, which looks
# for protoc-gen-go and protoc-gen-go-grpc in PATH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool() { # module, name: where Go keeps the tool, built if need be
	go tool -modfile="hack/tools/$1" -n "$2"
}

plugin=$(tool go.mod protoc-gen-go)
grpc_plugin=$(tool go.mod protoc-gen-go-grpc)
buf=$(tool buf/go.mod buf)
export PATH="${plugin%/*}:${grpc_plugin%/*}:$PATH"

cd api/fn/v1
"$buf" build -o /dev/null
"$buf" generate
