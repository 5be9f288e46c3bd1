// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
)

// maxCause is how much of what a function says about its failure is kept, in
// bytes: it goes into a condition of the XR.
const maxCause = 1024

// maxQuoted is how much of a name that a function gave is shown, in bytes.
const maxQuoted = 100

const noReason = "it gave no reason"

// A CallError says why a function could not be called, or did not answer. Its
// text is the same each time for the same cause.
type CallError struct {
	Function string
	Endpoint string // a gRPC target
	Code     codes.Code
	Cause    string

	// Early tells that the function was not called, since too many calls wait for
	// it, and that it may be well: the call is to be tried again before anybody is
	// told.
	Early bool
}

// Error names the function, where it was called, and the cause.
func (e *CallError) Error() string {
	return fmt.Sprintf("function %q at %s: %s: %s", e.Function, e.Endpoint, words(e.Code), e.Cause)
}

// A fault is what a CallError is made of, before it is known for whom.
type fault struct {
	code  codes.Code
	cause string

	// answered tells that the function itself said so.
	answered bool
	// silent tells that there was no answer in time, nor anything else.
	silent bool
	// early tells that the function was not called, and that nobody can say yet
	// whether it would have answered.
	early bool
}

// localFault words an error that gRPC made on this side, of which only the code
// is stable.
func (c *connection) localFault(code codes.Code) *fault {
	flt := &fault{code: code}
	switch code {
	case codes.DeadlineExceeded:
		flt.silent = true
		flt.cause = fmt.Sprintf("no answer within %s", c.callTimeout)
	case codes.Unavailable:
		flt.cause = "the connection broke during the call: did the function crash?"
	case codes.Internal:
		flt.cause = "what it answered is no response of a composition function, is nested too deeply to be read, or broke off"
	case codes.ResourceExhausted:
		flt.cause = "the response is larger than the limit of " + asSize(c.messageLimit)
	case codes.Unimplemented:
		flt.cause = "it does not know the method"
	case codes.Canceled:
		flt.cause = "the connection was closed"
	default:
		flt.cause = "it did not answer the call as a composition function does"
	}
	return flt
}

// words spells a code as prose does: DeadlineExceeded is "deadline exceeded".
func words(code codes.Code) string {
	var b strings.Builder
	for i, r := range code.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}

var (
	// localSocket is the near end of a connection, whose port changes each time.
	localSocket = regexp.MustCompile(`(\[[0-9a-fA-F:.%]+\]|\d{1,3}(\.\d{1,3}){3}):\d+->`)
	pointer     = regexp.MustCompile(`\b0x[0-9a-fA-F]{6,}\b`)
)

// stable removes from a message what changes each time although the cause is
// the same, and cuts what is too long.
func stable(message string) string {
	message = strings.ToValidUTF8(strings.TrimSpace(message), "\uFFFD")
	message = localSocket.ReplaceAllString(message, "")
	message = pointer.ReplaceAllString(message, "0x…")
	if message == "" {
		return noReason
	}
	return shorten(message, maxCause)
}

// quote a name that a function gave, whatever it is and however long.
func quote(name string) string {
	return strconv.Quote(shorten(name, maxQuoted))
}

// shorten cuts a text, between characters, to about that many bytes.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
