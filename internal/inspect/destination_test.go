// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"
	"testing"
)

func TestParseDestination(t *testing.T) {
	cases := map[string]struct {
		text    string
		wantErr string // part of it; empty if the text names a destination
	}{
		"File":          {text: "file:/var/tmp/rounds.jsonl"},
		"Socket":        {text: "unix:/run/rounds.sock"},
		"LongestSocket": {text: "unix:/" + strings.Repeat("x", 106)},
		"LongSocket":    {text: "unix:/" + strings.Repeat("x", 107), wantErr: "choose a shorter one"},
		"LongFile":      {text: "file:/" + strings.Repeat("x", 107)},
		"PathAlone":     {text: "/tmp/rounds.jsonl", wantErr: "neither file: nor unix:"},
		"RelativePath":  {text: "file:rounds.jsonl", wantErr: "an absolute path"},
		"NoPath":        {text: "unix:", wantErr: "an absolute path"},
		"OtherScheme":   {text: "tcp:/localhost", wantErr: "neither file: nor unix:"},
		"Nothing":       {text: "", wantErr: "neither file: nor unix:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseDestination(tc.text)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("want an error with %q, got %v", tc.wantErr, err)
				}
				return
			}
			if err != nil || got.String() != tc.text {
				t.Errorf("want %s, got %s, error %v", tc.text, got, err)
			}
		})
	}
}
