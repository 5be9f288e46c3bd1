// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refuse answers with a Status in JSON, which clients of any encoding read. A watch
// whose version is gone is told so by its first event, as API servers do it.
func refuse(w http.ResponseWriter, r Request, code int, retryAfter time.Duration) {
	status := statusOf(r, code, retryAfter)
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusGone && r.Verb == verbWatch {
		write(w, http.StatusOK, map[string]any{"type": "ERROR", "object": status})
		return
	}
	if retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	write(w, code, status)
}

func write(w http.ResponseWriter, code int, answer any) {
	w.WriteHeader(code)
	// The client may be gone; then there is nobody to tell.
	_ = json.NewEncoder(w).Encode(answer)
}

func statusOf(r Request, code int, retryAfter time.Duration) metav1.Status {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reasonOf(code),
		Message:  fmt.Sprintf("%s of %q: this fault was injected", http.StatusText(code), r.Path),
	}
	if retryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter.Seconds())}
	}
	return status
}

func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusInternalServerError:
		return metav1.StatusReasonInternalError
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	case http.StatusGatewayTimeout:
		return metav1.StatusReasonTimeout
	case http.StatusGone:
		return metav1.StatusReasonExpired
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	}
	return metav1.StatusReasonUnknown
}
