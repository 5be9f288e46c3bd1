// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"fmt"
	"strings"

	commonv1 "github.com/crosswatch-io/crosswatch/api/common/v1"
)

// maxNamed is how many XRDs a message names.
const maxNamed = 5

// convergedOf says whether it is known what each XR depends on. The messages have no counts: one that changes with each XR
// would be a transition each time.
func convergedOf(all []Facts) commonv1.Condition {
	var behind []string
	for _, f := range all {
		if !f.isConverged() {
			behind = append(behind, fmt.Sprintf("%q", f.XRD))
		}
	}
	if len(behind) == 0 {
		return commonv1.True(commonv1.TypeConverged, commonv1.ReasonTracked)
	}
	named := strings.Join(behind[:min(len(behind), maxNamed)], ", ")
	if len(behind) > maxNamed {
		named += " and others"
	}
	return commonv1.False(commonv1.TypeConverged, commonv1.ReasonStarting,
		fmt.Sprintf("not every XR of XRD %s has been reconciled since the operator started", named))
}
