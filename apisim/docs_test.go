package apisim

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/apisim/protocoltest"
)

// TestDocsNameTestsThatExist checks that each line of the table in README.md with "done" names a
// test, and that the tests are those of this package or of protocoltest.
func TestDocsNameTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range function.FindAllSubmatch(text, -1) {
			known[string(match[1])] = true
		}
	}
	for name := range protocoltest.Tests() {
		known[strings.TrimPrefix(name, "json/")] = true
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|list/|watch/|stream/|forms)\\w*)`")
	lines := 0
	for line := range strings.Lines(string(page)) {
		if !strings.Contains(line, "| done |") {
			continue
		}
		lines++
		names := named.FindAllStringSubmatch(line[strings.Index(line, "| done |"):], -1)
		if len(names) == 0 {
			t.Errorf("names no test: %s", line)
		}
		for _, match := range names {
			if !known[match[1]] {
				t.Errorf("there is no %s: %s", match[1], line)
			}
		}
	}
	if lines < 40 {
		t.Errorf("only %d lines of the table were found", lines)
	}
}
