package house

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testName is the name of a test, or the beginning of names: it ends with "_", or a pattern follows.
// A name behind a dot is of another package.
var testName = regexp.MustCompile(`(?:^|[^\w.])(Test[A-Z]\w*\\?)`)

// TestNamedTestsExist checks that each test that a comment, a page or the Makefile names is declared,
// in this module or in one of those beside it.
func TestNamedTestsExist(t *testing.T) {
	enterRoot(t)
	files := parseFiles(t, walkModules)
	var declared []string
	for _, file := range files {
		for _, decl := range file.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				declared = append(declared, fn.Name.Name)
			}
		}
	}
	slices.Sort(declared)
	check := func(place, text string) {
		for _, name := range unknownTests(text, declared) {
			t.Errorf("%s names %s, which no file declares", place, name)
		}
	}
	for _, file := range files {
		for _, group := range file.ast.Comments {
			check(path.Join(file.dir, file.name), group.Text())
		}
	}
	for _, page := range pages(t) {
		check(page, fence.ReplaceAllStringFunc(readFile(t, page), func(block string) string {
			if strings.HasPrefix(block, "```go\n") {
				return "" // it declares its own tests
			}
			return block
		}))
	}
	check("Makefile", readFile(t, "Makefile"))
}

// unknownTests returns the names of tests in a text that are not declared. declared is sorted.
func unknownTests(text string, declared []string) (unknown []string) {
	for _, match := range testName.FindAllStringSubmatch(text, -1) {
		name, isPattern := strings.CutSuffix(match[1], `\`)
		at, found := slices.BinarySearch(declared, name)
		if isPattern || strings.HasSuffix(name, "_") {
			found = at < len(declared) && strings.HasPrefix(declared[at], name)
		}
		if !found {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// TestUnknownTests lists what counts as the name of a test.
func TestUnknownTests(t *testing.T) {
	declared := []string{"TestDays", "TestP16_Rewind"}
	for text, want := range map[string][]string{
		"TestDays lives through days":        nil,
		"-run '^TestDays$', `TestP16_…`":     nil,
		"fstest.TestFS and a Testimony":      nil,
		`-run 'TestP\d\d_'`:                  nil,
		"TestNights, (TestP17_) and TestDay": {"TestNights", "TestP17_", "TestDay"},
		`-run 'TestC\d\d_'`:                  {"TestC"},
	} {
		if got := unknownTests(text, declared); !slices.Equal(got, want) {
			t.Errorf("in %q it finds %q, want %q", text, got, want)
		}
	}
}
