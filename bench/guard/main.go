package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// suite selects benchmarks of one package.
type suite struct {
	pkg       string         // its directory, from the root of the repository
	bench     string         // the benchmarks, as for -bench
	except    *regexp.Regexp // those that are left out; nil if none
	benchtime string         // how often each runs, as for -benchtime
}

// suites leave out comparisons with something else, and results that depend on how goroutines
// meet.
func suites() []suite {
	return []suite{
		{"store", "^Benchmark(Get|Set|Namespace|Lookup|All|Snapshot)$",
			nil, "500x"},
		{"store", "^Benchmark(Replace|AddIndex)$", nil, "3x"},
		{"internal/engine/delta", "^Benchmark(PushPop|CompareDecimal)$", nil, "2000x"},
		{"internal/engine/delta", "^Benchmark(Replace)$", nil, "10x"},
		{"internal/engine/fanout", "^Benchmark(Notification|Stuck|LateJoin)$",
			regexp.MustCompile("batch=1$"), "1000x"},
		{"internal/decode/dedup", "^BenchmarkCompile$", nil, "50x"},
		{"source", "^Benchmark(List|Watch)$", nil, "20x"},
		{"contract", "^BenchmarkInitialSync$", nil, "1x"},
		{"clientgo/cache", "^BenchmarkUpdates$/^1 handlers$/^(native|drop-in)", nil, "20000x"},
	}
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("guard: ")
	update := flag.Bool("update", false, "record the figures")
	root := flag.String("root", "..", "the root of the repository")
	flag.Parse()
	if err := run(*root, *update); err != nil {
		log.Fatal(err)
	}
}

func run(root string, update bool) error {
	file := filepath.Join(root, "bench", "guard", "recorded.txt")
	var measured []result
	for _, s := range suites() {
		found, err := s.measure(root)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s has no benchmark %s: update the list in guard/main.go",
				s.pkg, s.bench)
		}
		measured = append(measured, found...)
	}
	if update {
		return record(measured, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w: record it with make guard-update", err)
	}
	recorded, err := parse(bytes.NewReader(text), file, nil)
	if err != nil {
		return err
	}
	if err := compare(measured, recorded); err != nil {
		return err
	}
	log.Printf("%d benchmarks allocate no more than recorded", len(measured))
	return nil
}

// measure runs the benchmarks of a suite, with one processor: their allocations then depend less on
// the interleaving of goroutines.
func (s suite) measure(root string) ([]result, error) {
	command := exec.Command("go", "test", "-run", "^$", "-bench", s.bench, "-benchmem",
		"-benchtime", s.benchtime, "-count", "3", "-cpu", "1", "./"+s.pkg)
	command.Dir, command.Stderr = root, os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", command, err, output)
	}
	return parse(bytes.NewReader(output), s.pkg, s.except)
}
