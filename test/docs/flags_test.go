// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
)

func operatorFlags() *flag.FlagSet {
	options := app.NewOptions()
	flags := flag.NewFlagSet("crosswatch", flag.ContinueOnError)
	options.AddFlags(flags)
	return flags
}

// flagRow is a row of a table that begins with a flag and its default, which may be empty.
var flagRow = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| (?:`([^`]*)` )?\\|")

// documentedFlags returns the defaults that docs/flags.md says, as flags print them: the document may have 1h for 1h0m0s.
func documentedFlags(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs/flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags, defaults := operatorFlags(), map[string]string{}
	for _, row := range flagRow.FindAllStringSubmatch(string(content), -1) {
		name, value := row[1], row[2]
		if _, twice := defaults[name]; twice {
			t.Errorf("--%s has two rows", name)
		}
		defaults[name] = value
		if f := flags.Lookup(name); f != nil && f.Value.Set(value) == nil {
			defaults[name] = f.Value.String()
		}
	}
	return defaults
}

func TestEveryFlagIsDocumentedWithItsDefault(t *testing.T) {
	defaults := map[string]string{}
	operatorFlags().VisitAll(func(f *flag.Flag) { defaults[f.Name] = f.DefValue })
	if diff := cmp.Diff(defaults, documentedFlags(t)); diff != "" {
		t.Errorf("defaults in the tables of docs/flags.md (-of the operator +documented):\n%s", diff)
	}
}
