package cache_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`((?:Test|Benchmark)[A-Za-z_]+)`")

// TestBehaviours: every test that the table of behaviours names as ours exists.
func TestBehaviours(t *testing.T) {
	table, err := os.ReadFile("testdata/behaviours.md")
	must(t, err)
	ours := testsIn(t, "*_test.go", "../internal/listwatch/*_test.go")
	rows := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], " ---") {
			continue
		}
		rows++
		for _, name := range testName.FindAllStringSubmatch(cells[3], -1) {
			if !ours[name[1]] {
				t.Errorf("the table names the test %s, which does not exist: %s", name[1], line)
			}
		}
	}
	if rows < 100 {
		t.Errorf("the table has %d rows, want at least 100: is it written otherwise now?", rows)
	}
}

// testsIn returns the names of the tests and benchmarks in files.
func testsIn(t *testing.T, patterns ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		must(t, err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			must(t, err)
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					names[f.Name.Name] = true
				}
			}
		}
	}
	return names
}
