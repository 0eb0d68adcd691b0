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

// remedy is how to record anew.
const remedy = "make guard-update"

const (
	// allowed is how much of what was recorded may be used, slack how many bytes per
	// operation on top.
	allowed = 1.10
	slack   = 16
)

// result is what one operation of a benchmark allocates.
type result struct {
	// name is the benchmark with its package, as in store/BenchmarkSet/batch=1.
	name string
	// least and most are what its runs allocated.
	least, most cost
}

// cost is what one operation allocates.
type cost struct{ bytes, allocations float64 }

// results are what benchmarks allocate, in the order in which they ran, each once.
type results []result

// processors is the suffix that says how many processors a benchmark ran on.
var processors = regexp.MustCompile(`-\d+$`)

// parse reads results in the format of Go's benchmarks, without those whose names match
// but.
func parse(from io.Reader, file string, but *regexp.Regexp) (list results, err error) {
	index := map[string]int{}
	reader := benchfmt.NewReader(from, file)
	for reader.Scan() {
		var r *benchfmt.Result
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			r = record
		case *benchfmt.SyntaxError:
			return nil, record
		default:
			continue
		}
		name := r.GetConfig("pkg") + "/Benchmark" + processors.ReplaceAllString(r.Name.String(), "")
		if but != nil && but.MatchString(name) {
			continue
		}
		bytes, ok := r.Value("B/op")
		allocations, also := r.Value("allocs/op")
		if !ok || !also {
			return nil, fmt.Errorf("%s says nothing of allocations", name)
		}
		i, seen := index[name]
		if !seen {
			i = len(list)
			index[name] = i
			list = append(list, result{name, cost{bytes, allocations}, cost{bytes, allocations}})
		}
		list[i].least = cost{min(list[i].least.bytes, bytes), min(list[i].least.allocations, allocations)}
		list[i].most = cost{max(list[i].most.bytes, bytes), max(list[i].most.allocations, allocations)}
	}
	return list, reader.Err()
}

// record writes the most that each benchmark allocated to a file.
func (l results) record(file string) error {
	var b strings.Builder
	pkg := ""
	for _, r := range l {
		in, name, _ := strings.Cut(r.name, "/Benchmark")
		if in != pkg {
			pkg = in
			fmt.Fprintf(&b, "pkg: %s\n", pkg)
		}
		fmt.Fprintf(&b, "Benchmark%s 1 %.0f B/op %.0f allocs/op\n", name, r.most.bytes, r.most.allocations)
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// compare returns an error that names every benchmark that allocates more in all its runs
// than recorded, was not recorded, or is recorded and has gone.
func (l results) compare(recorded results) error {
	before := map[string]result{}
	for _, r := range recorded {
		before[r.name] = r
	}
	var failures []error
	for _, r := range l {
		was, ok := before[r.name]
		old, now := was.most, r.least
		delete(before, r.name)
		switch {
		case !ok:
			failures = append(failures, fmt.Errorf("%s is not recorded", r.name))
		case now.allocations > old.allocations*allowed:
			failures = append(failures, fmt.Errorf("%s: %.0f allocations per operation, recorded are %.0f", r.name, now.allocations, old.allocations))
		case now.bytes > old.bytes*allowed+slack:
			failures = append(failures, fmt.Errorf("%s: %.0f bytes per operation, recorded are %.0f", r.name, now.bytes, old.bytes))
		}
	}
	for _, r := range recorded {
		if _, gone := before[r.name]; gone {
			failures = append(failures, fmt.Errorf("%s is recorded and did not run", r.name))
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nIf that is meant, record anew with %s and say why in the commit", errors.Join(failures...), remedy)
}
