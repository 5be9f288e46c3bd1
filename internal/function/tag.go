// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// tag identifies all that a function is shown: it is the same for equal
// requests, of which the tag itself must not be set yet.
func tag(req *fnv1.RunFunctionRequest) (string, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return "", fmt.Errorf("cannot encode the request: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}
