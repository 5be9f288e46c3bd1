// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package watchstatus

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"Empty":      {"", ""},
		"Fits":       {"0123456789", "0123456789"},
		"TooLong":    {"0123456789a", "0123456…"},
		"Multibyte":  {"0€€€", "0€€€"},
		"Cut":        {"01€€€", "01€…"},
		"Quoted":     {`"""""`, `"""""`},
		"TooQuoted":  {`""""""`, `"""…`},
		"Markup":     {"<<", "<…"},
		"NotUnicode": {"a\xff\xfeb", "a\uFFFDb"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clip(tc.text, 10)
			if got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
			raw, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if size := len(raw) - len(`""`); size > 10 || !utf8.ValidString(got) {
				t.Errorf("want at most 10 bytes of JSON, got %s", raw)
			}
		})
	}
}
