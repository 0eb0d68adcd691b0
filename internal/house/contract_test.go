package house

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	contractRow  = regexp.MustCompile(`(?m)^\| (P\d+) ([^|]*)\|([^|]*)\|([^|]*)\|$`)
	contractTest = regexp.MustCompile(`(?m)^func (Test((?:P\d\d_)+)\w+)\(t \*testing\.T\)`)
	codeLink     = regexp.MustCompile("\\[`(?:[\\w\\[\\]]+\\.)*(\\w+)`\\]\\(([\\w./]+\\.go)\\)")

	update = flag.Bool("update", false, "write the tests of each property into the table of ARCHITECTURE.md")
)

// evidence are the tests that carry the number of one property.
type evidence struct {
	contract []string // in the root: over HTTP, for every kind of informer
	rooms    []string // the packages that have some of their own
}

// cell returns what the table of the contract says of them.
func (e evidence) cell() string {
	slices.Sort(e.contract)
	slices.Sort(e.rooms)
	var parts []string
	if len(e.contract) > 0 {
		parts = append(parts, "`"+strings.Join(e.contract, "`, `")+"`")
	}
	if len(e.rooms) > 0 {
		parts = append(parts, "in `"+strings.Join(slices.Compact(e.rooms), "`, `")+"`")
	}
	return strings.Join(parts, "; ")
}

// evidenceOf finds the tests of every property, as in P05.
func evidenceOf(t *testing.T) map[string]evidence {
	found := map[string]evidence{}
	walk(t, "_test.go", func(name string) {
		for _, match := range contractTest.FindAllStringSubmatch(readFile(t, name), -1) {
			for property := range strings.SplitSeq(strings.TrimSuffix(match[2], "_"), "_") {
				e := found[property]
				if room := path.Dir(name); room == "." {
					e.contract = append(e.contract, match[1])
				} else {
					e.rooms = append(e.rooms, room)
				}
				found[property] = e
			}
		}
	})
	return found
}

// TestArchitectureContract holds the table of the contract to the code: every
// property has a place that exists, and names the tests that carry its number.
// With -update it writes those.
func TestArchitectureContract(t *testing.T) {
	enterRoot(t)
	found := evidenceOf(t)
	rows := map[string]bool{}
	page := readFile(t, "ARCHITECTURE.md")
	updated := contractRow.ReplaceAllStringFunc(page, func(line string) string {
		row := contractRow.FindStringSubmatch(line)
		property := row[1]
		if len(property) == 2 {
			property = "P0" + property[1:]
		}
		rows[property] = true
		checkPlaces(t, row[1], row[3])
		want := found[property].cell()
		if strings.TrimSpace(row[4]) != want && !*update {
			t.Errorf("ARCHITECTURE.md: the row of %s should name these tests: %s\nRun: go test ./internal/house -run Contract -update", row[1], want)
		}
		return fmt.Sprintf("| %s %s|%s| %s |", row[1], row[2], row[3], want)
	})
	if *update && updated != page {
		writeFile(t, "ARCHITECTURE.md", updated)
	}
	for property := range found {
		if !rows[property] {
			t.Errorf("ARCHITECTURE.md has no row for %s, which tests carry", property)
		}
	}
	for property := range strings.FieldsSeq("P01 P02 P03 P04 P05 P06 P07 P08 P09 P10 P11 P12 P13 P14 P15 P16 P17 P18 P19 P20") {
		if len(found[property].contract) == 0 {
			t.Errorf("no test in the root package carries the number of %s", property)
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
			t.Errorf("ARCHITECTURE.md: the row of %s names %s, which %s does not declare", property, place[1], place[2])
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
