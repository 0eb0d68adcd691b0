package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// TestRecord reads the least and the most of each benchmark that is not left out, writes them and
// reads them again.
func TestRecord(t *testing.T) {
	list, err := parse(strings.NewReader(output), "test", regexp.MustCompile("other"))
	want := []result{{"example.com/store/BenchmarkGet/one", cost{100, 2}, cost{120, 3}}}
	if err != nil || !slices.Equal(list, want) {
		t.Fatalf("found %v, %v; want %v", list, err, want)
	}
	file := filepath.Join(t.TempDir(), "recorded.txt")
	if err := record(list, file); err != nil {
		t.Fatal(err)
	}
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	list, err = parse(text, "test", nil)
	want[0].least = want[0].most
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("read %v, %v; want %v", list, err, want)
	}
	if _, err := parse(strings.NewReader("BenchmarkTime 1 5 ns/op\n"), "test", nil); err == nil {
		t.Error("a benchmark without allocations is no error")
	}
}

// TestCompare checks the refusals of the guard, and its messages.
func TestCompare(t *testing.T) {
	once := func(name string, bytes, allocations float64) result {
		c := cost{bytes, allocations}
		return result{name, c, c}
	}
	a, b := once("p/A", 1000, 20), once("p/B", 0, 0)
	recorded := []result{a, b}
	for _, test := range []struct {
		measured []result
		message  string // "": no error
	}{
		{recorded, ""},
		{[]result{once("p/A", 10, 2), b}, ""},
		{[]result{once("p/A", 1100, 22), once("p/B", slack, 0)}, ""},
		{[]result{once("p/A", 1000, 23), b}, "p/A: 23 allocations per operation, recorded are 20"},
		{[]result{a, once("p/B", 0, 1)}, "p/B: 1 allocations per operation, recorded are 0"},
		{[]result{once("p/A", 1117, 20), b}, "p/A: 1117 bytes per operation, recorded are 1000"},
		{[]result{a, b, once("p/C", 1, 1)}, "p/C is not recorded"},
		{[]result{a}, "p/B is recorded and did not run"},
	} {
		err := compare(test.measured, recorded)
		switch {
		case test.message == "" && err != nil:
			t.Errorf("%v: %v", test.measured, err)
		case test.message != "" && (err == nil || !strings.Contains(err.Error(), test.message) ||
			!strings.Contains(err.Error(), "make guard-update")):
			t.Errorf("%v: the error is %v, want %q and how to record", test.measured, err, test.message)
		}
	}
}
