#!/usr/bin/env bash
# Copyright The Crosswatch Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs each fuzz target of the module for as long as the first argument says,
# one after the other, as go test takes one at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

duration=${1:?how long to run each fuzz target, for instance 60s}
count=0
while read -r package dir; do
	# A target is a function of a test file: asking the compiled tests would cost minutes.
	while read -r target; do
		echo "fuzz: $package $target for $duration"
		# Inputs are made smaller for a while only: for large ones that would take all of the time.
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 100x "$package"
		count=$((count + 1))
	done < <(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | awk '{ print $2 }')
done < <(go list -f '{{.ImportPath}} {{.Dir}}' ./...)
echo "fuzz: $count targets passed"
