package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/perf/benchfmt"
)

const (
	// allowed is the largest ratio of a figure to the recorded one, slack the bytes per operation
	// that are allowed in addition.
	allowed = 1.10
	slack   = 16
)

// cost is the allocation of one operation.
type cost struct{ bytes, allocations float64 }

// result is the cost of one benchmark in several runs.
type result struct {
	name        string // with its package, as in store/BenchmarkSet/batch=1
	least, most cost
}

// processors is the suffix with the number of processors of a benchmark.
var processors = regexp.MustCompile(`-\d+$`)

// parse reads results in the format of Go's benchmarks, in their order and each benchmark once,
// without those whose names match except.
func parse(from io.Reader, file string, except *regexp.Regexp) (list []result, err error) {
	index := map[string]int{}
	reader := benchfmt.NewReader(from, file)
	for reader.Scan() {
		r, ok := reader.Result().(*benchfmt.Result)
		if failure, isError := reader.Result().(*benchfmt.SyntaxError); isError {
			return nil, failure
		} else if !ok {
			continue
		}
		name := processors.ReplaceAllString(r.Name.String(), "")
		name = r.GetConfig("pkg") + "/Benchmark" + name
		if except != nil && except.MatchString(name) {
			continue
		}
		bytes, ok := r.Value("B/op")
		allocations, also := r.Value("allocs/op")
		if !ok || !also {
			return nil, fmt.Errorf("%s does not report allocations", name)
		}
		i, seen := index[name]
		if !seen {
			i = len(list)
			index[name] = i
			c := cost{bytes, allocations}
			list = append(list, result{name, c, c})
		}
		least, most := &list[i].least, &list[i].most
		*least = cost{min(least.bytes, bytes), min(least.allocations, allocations)}
		*most = cost{max(most.bytes, bytes), max(most.allocations, allocations)}
	}
	return list, reader.Err()
}

// record writes the most that each benchmark allocated to a file.
func record(list []result, file string) error {
	var b strings.Builder
	pkg := ""
	for _, r := range list {
		in, name, _ := strings.Cut(r.name, "/Benchmark")
		if in != pkg {
			pkg = in
			fmt.Fprintf(&b, "pkg: %s\n", pkg)
		}
		fmt.Fprintf(&b, "Benchmark%s 1 %.0f B/op %.0f allocs/op\n",
			name, r.most.bytes, r.most.allocations)
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// compare returns an error that names every benchmark that allocates more in all its runs
// than recorded, was not recorded, or is recorded and did not run.
func compare(measured, recorded []result) error {
	before := map[string]cost{}
	for _, r := range recorded {
		before[r.name] = r.most
	}
	var failures []error
	failed := func(format string, arguments ...any) {
		failures = append(failures, fmt.Errorf(format, arguments...))
	}
	for _, r := range measured {
		old, ok := before[r.name]
		delete(before, r.name)
		switch {
		case !ok:
			failed("%s is not recorded", r.name)
		case r.least.allocations > old.allocations*allowed:
			failed("%s: %.0f allocations per operation, recorded are %.0f",
				r.name, r.least.allocations, old.allocations)
		case r.least.bytes > old.bytes*allowed+slack:
			failed("%s: %.0f bytes per operation, recorded are %.0f",
				r.name, r.least.bytes, old.bytes)
		}
	}
	for _, r := range recorded {
		if _, gone := before[r.name]; gone {
			failed("%s is recorded and did not run", r.name)
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nIf this is intended, run make guard-update and say why in the commit",
		errors.Join(failures...))
}
