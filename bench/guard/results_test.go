package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const output = `goos: linux
pkg: example.com/store
BenchmarkGet/one-2   	 100	  50.0 ns/op	  7.5 extra	 120 B/op	  3 allocs/op
BenchmarkGet/one-2   	 100	  50.0 ns/op	  7.5 extra	 100 B/op	  2 allocs/op
BenchmarkGet/other-2 	 100	  50.0 ns/op	  900 B/op	 0 allocs/op
PASS
`

// once returns the result of one run.
func once(name string, bytes, allocations float64) result {
	c := cost{bytes, allocations}
	return result{name, c, c}
}

func parsed(t *testing.T, text string) results {
	t.Helper()
	list, err := parse(strings.NewReader(text), "test", regexp.MustCompile("other"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestParse asks for the least and the most of each benchmark that is not left out.
func TestParse(t *testing.T) {
	list := parsed(t, output)
	if want := (result{"example.com/store/BenchmarkGet/one", cost{100, 2}, cost{120, 3}}); len(list) != 1 || list[0] != want {
		t.Errorf("found %v, want %v", list, want)
	}
	if _, err := parse(strings.NewReader("BenchmarkTime 1 5 ns/op\n"), "test", nil); err == nil {
		t.Error("a benchmark without allocations is no error")
	}
}

// TestRecord writes results and reads them again.
func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "recorded.txt")
	list := parsed(t, output)
	if err := list.record(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if again := parsed(t, string(text)); len(again) != 1 || again[0].name != list[0].name || again[0].most != list[0].most {
		t.Errorf("read %v, want the most of %v", again, list)
	}
}

// TestCompare asks where the guard strikes, and what it says.
func TestCompare(t *testing.T) {
	recorded := results{once("p/A", 1000, 20), once("p/B", 0, 0)}
	for _, test := range []struct {
		name     string
		measured results
		says     string // "": nothing
	}{
		{"as recorded", recorded, ""},
		{"less", results{once("p/A", 10, 2), once("p/B", 0, 0)}, ""},
		{"110 %", results{once("p/A", 1100, 22), once("p/B", slack, 0)}, ""},
		{"more allocations", results{once("p/A", 1000, 23), once("p/B", 0, 0)}, "p/A: 23 allocations per operation, recorded are 20"},
		{"the first allocation", results{once("p/A", 1000, 20), once("p/B", 0, 1)}, "p/B: 1 allocations per operation, recorded are 0"},
		{"more bytes", results{once("p/A", 1117, 20), once("p/B", 0, 0)}, "p/A: 1117 bytes per operation, recorded are 1000"},
		{"new", append(results{once("p/C", 1, 1)}, recorded...), "p/C is not recorded"},
		{"gone", recorded[:1], "p/B is recorded and did not run"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.measured.compare(recorded)
			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), remedy)):
				t.Errorf("the error is %v; it should say %q, and how to record anew", err, test.says)
			}
		})
	}
}
