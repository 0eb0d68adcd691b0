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
// of a test over HTTP: in contract, or in the suite.
func properties(t *testing.T) map[string]bool {
	found := map[string]bool{}
	walk(t, "_test.go", func(name string) {
		for _, match := range contractTest.FindAllStringSubmatch(readFile(t, name), -1) {
			for property := range strings.SplitSeq(strings.TrimSuffix(match[1], "_"), "_") {
				found[property] = found[property] || path.Dir(name) == "contract"
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
		checkPlaces(t, "ARCHITECTURE.md", "P"+row[1], row[3])
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

var (
	controllerRow  = regexp.MustCompile(`(?m)^\| C(\d+) ([^|]*)\|([^|]*)\|$`)
	controllerTest = regexp.MustCompile(`(?m)^func TestC(\d\d)_\w+\(t \*testing\.T\)`)
	shardRow       = regexp.MustCompile(`(?m)^\| S(\d) ([^|]*)\|([^|]*)\|$`)
	shardTest      = regexp.MustCompile(`(?m)^func TestS(\d)_\w+\(t \*testing\.T\)`)
	viewRow        = regexp.MustCompile(`(?m)^\| V(\d) ([^|]*)\|([^|]*)\|$`)
	viewTest       = regexp.MustCompile(`(?m)^func TestV(\d)_\w+\(t \*testing\.T\)`)
)

// TestShardsContract checks that every property of shards has a place in the code, which exists,
// and a test that carries its number.
func TestShardsContract(t *testing.T) {
	enterRoot(t)
	checkContract(t, "ARCHITECTURE.md", "S", 7, shardRow, shardTest)
}

// TestViewsContract does so for the properties of views.
func TestViewsContract(t *testing.T) {
	enterRoot(t)
	checkContract(t, "ARCHITECTURE.md", "V", 6, viewRow, viewTest)
}

// checkContract checks that a page has a row for each of n properties, which leads to places in the
// code, and that a test carries the number of each.
func checkContract(t *testing.T, page, letter string, n int, row, test *regexp.Regexp) {
	t.Helper()
	found := numbersOfTests(t, test)
	rows := row.FindAllStringSubmatch(readFile(t, page), -1)
	if len(rows) != n {
		t.Errorf("%s has %d rows of properties, want %d", page, len(rows), n)
	}
	for _, row := range rows {
		if !found[row[1]] {
			t.Errorf("no test carries the number of %s%s", letter, row[1])
		}
		checkPlaces(t, page, letter+row[1], row[3])
	}
}

// numbersOfTests returns the numbers in the names of tests.
func numbersOfTests(t *testing.T, name *regexp.Regexp) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	walk(t, "_test.go", func(file string) {
		for _, match := range name.FindAllStringSubmatch(readFile(t, file), -1) {
			found[match[1]] = true
		}
	})
	return found
}

// TestControllersContract checks that every property of a controller has a section, a place in
// the code, which exists, and a test that carries its number.
func TestControllersContract(t *testing.T) {
	enterRoot(t)
	found := numbersOfTests(t, controllerTest)
	page := "docs/controllers.md"
	text := readFile(t, page)
	const places = "ARCHITECTURE.md"
	rows := controllerRow.FindAllStringSubmatch(readFile(t, places), -1)
	if len(rows) != 14 {
		t.Errorf("%s has %d rows of properties, want 14", places, len(rows))
	}
	for _, row := range rows {
		if !found[fmt.Sprintf("%02s", row[1])] {
			t.Errorf("no test carries the number of C%s", row[1])
		}
		if !strings.Contains(text, "\n## C"+row[1]+" "+strings.TrimSpace(row[2])+"\n") {
			t.Errorf("%s has no section C%s %s", page, row[1], row[2])
		}
		checkPlaces(t, places, "C"+row[1], row[3])
	}
}

// checkPlaces follows the links of a row to the declarations that they name.
func checkPlaces(t *testing.T, page, property, cell string) {
	t.Helper()
	places := codeLink.FindAllStringSubmatch(cell, -1)
	if len(places) == 0 {
		t.Errorf("%s: the row of %s leads to no place in the code", page, property)
	}
	for _, place := range places {
		file := path.Join(path.Dir(page), place[2])
		if !regexp.MustCompile(`(func|type) (\([^)]*\) )?` + place[1] + `\b`).MatchString(readFile(t, file)) {
			t.Errorf("%s: the row of %s names %s, which %s does not declare",
				page, property, place[1], file)
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
