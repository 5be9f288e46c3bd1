// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package respond

import (
	"fmt"

	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
)

// Fatal adds a result that stops the pipeline.
func Fatal(rsp *fnv1.RunFunctionResponse, format string, args ...any) {
	addResult(rsp, fnv1.Severity_SEVERITY_FATAL, format, args)
}

// Warning adds a result that becomes a warning event.
func Warning(rsp *fnv1.RunFunctionResponse, format string, args ...any) {
	addResult(rsp, fnv1.Severity_SEVERITY_WARNING, format, args)
}

// Normal adds a result that becomes a normal event.
func Normal(rsp *fnv1.RunFunctionResponse, format string, args ...any) {
	addResult(rsp, fnv1.Severity_SEVERITY_NORMAL, format, args)
}

// Condition adds a condition of the composite resource.
func Condition(rsp *fnv1.RunFunctionResponse, kind string, status fnv1.Status, reason, message string) {
	rsp.Conditions = append(rsp.Conditions, &fnv1.Condition{
		Type:    kind,
		Status:  status,
		Reason:  reason,
		Message: &message,
		Target:  fnv1.Target_TARGET_COMPOSITE.Enum(),
	})
}

func addResult(rsp *fnv1.RunFunctionResponse, severity fnv1.Severity, format string, args []any) {
	rsp.Results = append(rsp.Results, &fnv1.Result{
		Severity: severity,
		Message:  fmt.Sprintf(format, args...),
		Target:   fnv1.Target_TARGET_COMPOSITE.Enum(),
	})
}
