// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"strings"
	"unicode/utf8"
)

// What a function asks for, and what an API server answers, may be of any length. These bounds, in bytes of JSON, keep an object
// under 100 KiB however many rows it has. Nothing that is usual is cut: a kind has at most 63 characters.
const (
	maxAPIVersion = 80
	maxKind       = 63
	maxMessage    = 320
)

const ellipsis = "…"

// clip returns the text if it takes no more than that many bytes in a JSON string, or else as much of it, with an ellipsis, as
// does. What is not UTF-8 is replaced, as the API server would.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	size, fits := 0, 0
	for i, r := range text {
		if size <= most-len(ellipsis) {
			fits = i
		}
		if size += inJSON(r); size > most {
			return text[:fits] + ellipsis
		}
	}
	return text
}

// inJSON returns how many bytes the character takes in a JSON string that Go wrote.
func inJSON(r rune) int {
	switch {
	case r == '"', r == '\\':
		return len(`\"`)
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
		return len(`\u0000`)
	}
	return utf8.RuneLen(r)
}
