package factory_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBehaviours checks that the tests in the tables of behaviours exist: those of the package,
// of the internal packages, and the rows of the contract suite.
func TestBehaviours(t *testing.T) {
	named := regexp.MustCompile("`((?:Test|Benchmark|P\\d\\d_)\\w+)`")
	for name, atLeast := range map[string]int{"cache": 100, "dynamicinformer": 10, "metadatainformer": 10, "informers": 10} {
		dir := filepath.Join("..", "..", name)
		page, err := os.ReadFile(filepath.Join(dir, "testdata", "behaviours.md"))
		must(t, err)
		tests := testCode(t, ".", "../listwatch", "../sharedinformer", "../../cache", dir)
		rows := 0
		for line := range strings.Lines(string(page)) {
			columns := strings.Split(line, " | ")
			if len(columns) != 3 || strings.HasPrefix(line, "| ---") || strings.HasSuffix(columns[2], "test here |\n") {
				continue
			}
			rows++
			ours := named.FindAllStringSubmatch(columns[2], -1)
			if len(ours) == 0 && name != "cache" { // the rows of cache may be about forwarded names
				t.Errorf("%s names no test in: %s", dir, line)
			}
			for _, test := range ours {
				if !strings.Contains(tests, "func "+test[1]+"(") && !strings.Contains(tests, `"`+test[1]+`"`) {
					t.Errorf("%s: there is no %s", dir, test[1])
				}
			}
		}
		if rows < atLeast {
			t.Errorf("%s has %d rows, want at least %d", dir, rows, atLeast)
		}
	}
}

// testCode returns the text of all tests of directories, and of the contract suite.
func testCode(t *testing.T, dirs ...string) string {
	t.Helper()
	suite, err := os.ReadFile("../../../tidingstest/tests.go")
	must(t, err)
	var code strings.Builder
	code.WriteString(string(suite))
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		must(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			must(t, err)
			code.WriteString(string(text))
		}
	}
	return code.String()
}
