package factory_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBehaviours: the tests exist that the tables of behaviours name.
func TestBehaviours(t *testing.T) {
	named := regexp.MustCompile("`(Test\\w+)`")
	for _, name := range []string{"dynamicinformer", "metadatainformer", "informers"} {
		dir := filepath.Join("..", "..", name)
		page, err := os.ReadFile(filepath.Join(dir, "testdata", "behaviours.md"))
		must(t, err)
		tests := testCode(t, ".", "../listwatch", dir)
		rows := 0
		for line := range strings.Lines(string(page)) {
			columns := strings.Split(line, " | ")
			if len(columns) != 3 || strings.HasPrefix(line, "| ---") || strings.HasSuffix(columns[2], "test here |\n") {
				continue
			}
			rows++
			ours := named.FindAllStringSubmatch(columns[2], -1)
			if len(ours) == 0 {
				t.Errorf("%s names no test in: %s", dir, line)
			}
			for _, test := range ours {
				if !strings.Contains(tests, "func "+test[1]+"(t *testing.T)") {
					t.Errorf("%s: there is no %s", dir, test[1])
				}
			}
		}
		if rows < 10 {
			t.Errorf("%s has %d rows", dir, rows)
		}
	}
}

// testCode returns the text of all tests of directories.
func testCode(t *testing.T, dirs ...string) string {
	t.Helper()
	var code strings.Builder
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		must(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			must(t, err)
			code.Write(text)
		}
	}
	return code.String()
}
