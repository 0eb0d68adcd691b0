package house

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	contractRow  = regexp.MustCompile(`(?m)^\| P(\d+) ([^|]*)\|([^|]*)\|$`)
	suiteTest    = regexp.MustCompile(`name: "(P\d\d)_`)
	contractTest = regexp.MustCompile(`(?m)^func Test((?:P\d\d_)+)\w+\(t \*testing\.T\)`)
	codeLink     = regexp.MustCompile("\\[`(?:[\\w\\[\\]]+\\.)*(\\w+)`\\]\\(([\\w./]+\\.go)\\)")
)

// properties returns the numbers that the names of tests carry, as in P05; true for those
// of a test over HTTP: in the root package, or in the suite.
func properties(t *testing.T) map[string]bool {
	found := map[string]bool{}
	walk(t, "_test.go", func(name string) {
		for _, match := range contractTest.FindAllStringSubmatch(readFile(t, name), -1) {
			for property := range strings.SplitSeq(strings.TrimSuffix(match[1], "_"), "_") {
				found[property] = found[property] || path.Dir(name) == "."
			}
		}
	})
	for _, match := range suiteTest.FindAllStringSubmatch(readFile(t, "tidingstest/tests.go"), -1) {
		found[match[1]] = true
	}
	return found
}

// TestArchitectureContract checks that every property has a place in the code, which exists,
// and a test over HTTP that carries its number.
func TestArchitectureContract(t *testing.T) {
	enterRoot(t)
	found := properties(t)
	rows := map[string]bool{}
	for _, row := range contractRow.FindAllStringSubmatch(readFile(t, "ARCHITECTURE.md"), -1) {
		rows[fmt.Sprintf("P%02s", row[1])] = true
		checkPlaces(t, "P"+row[1], row[3])
	}
	for property := range found {
		if !rows[property] {
			t.Errorf("ARCHITECTURE.md has no row for %s, which tests carry", property)
		}
	}
	for n := range 20 {
		if property := fmt.Sprintf("P%02d", n+1); !found[property] || !rows[property] {
			t.Errorf("no test over HTTP carries the number of %s, or ARCHITECTURE.md has no row for it", property)
		}
	}
}

// checkPlaces follows the links of a row to what they name in the code.
func checkPlaces(t *testing.T, property, cell string) {
	t.Helper()
	places := codeLink.FindAllStringSubmatch(cell, -1)
	if len(places) == 0 {
		t.Errorf("ARCHITECTURE.md: the row of %s leads to no place in the code", property)
	}
	for _, place := range places {
		if !regexp.MustCompile(`(func|type) (\([^)]*\) )?` + place[1] + `\b`).MatchString(readFile(t, place[2])) {
			t.Errorf("ARCHITECTURE.md: the row of %s names %s, which %s does not declare",
				property, place[1], place[2])
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
