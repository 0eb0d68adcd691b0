package apisim

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsNameTestsThatExist asks that every test in the table of docs/apisim.md is one
// of this package, and that every line that says done names one.
func TestDocsNameTestsThatExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "apisim.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	test := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	lines := 0
	for line := range strings.Lines(string(page)) {
		if !strings.Contains(line, "| done |") {
			continue
		}
		lines++
		named := test.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("names no test: %s", line)
		}
		for _, match := range named {
			if !strings.Contains(source.String(), "\nfunc "+match[1]+"(") {
				t.Errorf("there is no %s: %s", match[1], line)
			}
		}
	}
	if lines < 40 {
		t.Errorf("only %d lines of the table were found", lines)
	}
}
