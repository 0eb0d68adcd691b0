package byresource_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBehaviours asks that the tests exist to which the tables of behaviours lead.
func TestBehaviours(t *testing.T) {
	for _, twin := range twins {
		room := filepath.Join("..", "..", filepath.Base(twin.ours))
		page, err := os.ReadFile(filepath.Join(room, "testdata", "behaviours.md"))
		if err != nil {
			t.Fatal(err)
		}
		tests := map[bool]string{false: testCode(t, "."), true: testCode(t, room)}
		rows := 0
		for line := range strings.Lines(string(page)) {
			columns := strings.Split(line, " | ")
			if len(columns) != 3 || strings.HasPrefix(line, "| behaviour") || strings.HasPrefix(line, "| ---") {
				continue
			}
			rows++
			named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(columns[2], -1)
			if len(named) == 0 {
				t.Errorf("%s names no test in: %s", room, line)
			}
			for _, name := range named {
				if here := strings.Contains(line, "in this package"); !strings.Contains(tests[here], "func "+name[1]+"(t *testing.T)") {
					t.Errorf("%s: there is no %s", room, name[1])
				}
			}
		}
		if rows < 10 {
			t.Errorf("%s has %d rows", room, rows)
		}
	}
}

// testCode is the text of all tests of a directory.
func testCode(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	return code.String()
}
