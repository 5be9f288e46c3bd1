// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
)

const root = "../.."

// sources parses every Go file of the folder that is part of a program.
func sources(t *testing.T, folder string) []*ast.File {
	t.Helper()
	var files []*ast.File
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		files = append(files, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// constants returns the values of the string constants of that prefix.
func constants(files []*ast.File, prefix string) map[string]string {
	values := map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != len(spec.Names) {
				return true
			}
			for i, name := range spec.Names {
				if literal, ok := spec.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING && strings.HasPrefix(name.Name, prefix) {
					values[name.Name], _ = strconv.Unquote(literal.Value)
				}
			}
			return true
		})
	}
	return values
}

// used returns the names that the files mention, other than where they are declared.
func used(files []*ast.File) sets.Set[string] {
	names := sets.New[string]()
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, value := range n.Values {
					ast.Inspect(value, func(n ast.Node) bool {
						if id, ok := n.(*ast.Ident); ok {
							names.Insert(id.Name)
						}
						return true
					})
				}
				return false
			case *ast.Ident:
				names.Insert(n.Name)
			}
			return true
		})
	}
	return names
}

// told returns the values of the constants of that prefix that the operator uses.
func told(t *testing.T, prefix string) []string {
	t.Helper()
	programs := slices.Concat(sources(t, "controllers"), sources(t, "internal"))
	declared := constants(append(sources(t, "api/common"), programs...), prefix)
	mentioned := used(programs)
	values := sets.New[string]()
	for name, value := range declared {
		if mentioned.Has(name) {
			values.Insert(value)
		}
	}
	if values.Len() == 0 {
		t.Fatalf("no constant with prefix %q is used: this test looks in the wrong place", prefix)
	}
	return sets.List(values)
}

// documented returns what the expression's group finds in the file, sorted, each once.
func documented(t *testing.T, file, expression string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	found := sets.New[string]()
	for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(string(content), -1) {
		found.Insert(match[1])
	}
	return sets.List(found)
}

func TestEveryReasonIsDocumented(t *testing.T) {
	inTables := documented(t, "docs/conditions.md", "(?m)^\\|[^|]*\\|[^|`]*`([A-Za-z]+)` *\\|")
	if diff := cmp.Diff(told(t, "Reason"), inTables); diff != "" {
		t.Errorf("reasons in the tables of docs/conditions.md (-used by the operator +documented):\n%s", diff)
	}
}

func TestEveryConditionIsDocumented(t *testing.T) {
	headings := documented(t, "docs/conditions.md", "(?m)^### ([A-Za-z]+):")
	if diff := cmp.Diff(told(t, "Type"), headings); diff != "" {
		t.Errorf("headings of docs/conditions.md (-conditions of the operator +documented):\n%s", diff)
	}
}
