package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
)

// suite are the benchmarks of one package that are looked at.
type suite struct {
	// pkg is the directory of the package, from the root of the repository.
	pkg string
	// bench says which benchmarks run, as -bench has it.
	bench string
	// but are those of them that are not looked at, nil if all are.
	but *regexp.Regexp
	// benchtime is how often each runs, as -benchtime has it.
	benchtime string
}

// suites leave out what compares with something else, and what depends on how goroutines
// meet.
func suites() []suite {
	return []suite{
		{"store", "^Benchmark(Get|Set|Namespace|Lookup|All|Snapshot)$", regexp.MustCompile("parallel|map|btree|WhileWriting"), "500x"},
		{"store", "^Benchmark(Replace|AddIndex)$", nil, "3x"},
		{"internal/delta", "^Benchmark(PushPop|CompareDecimal)$", nil, "2000x"},
		{"internal/delta", "^BenchmarkReplace$", nil, "10x"},
		{"internal/fanout", "^Benchmark(Notification|Stuck|LateJoin)$", regexp.MustCompile("batch=1$"), "1000x"},
		{"source", "^Benchmark(List|Watch)$", nil, "20x"},
		{".", "^BenchmarkInitialSync$", nil, "1x"},
		{"clientgo/cache", "^BenchmarkUpdates$/^1 handlers$/^(native|drop-in)", nil, "20000x"},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("guard", flag.ContinueOnError)
	update := flags.Bool("update", false, "record what is measured")
	root := flags.String("root", "..", "the root of the repository")
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	file := filepath.Join(*root, "bench", "guard", "recorded.txt")
	var measured results
	for _, s := range suites() {
		found, err := s.measure(ctx, *root)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s has no benchmark %s: bring the list in guard/main.go up to date", s.pkg, s.bench)
		}
		measured = append(measured, found...)
	}
	if *update {
		return measured.record(file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w: record it with %s", err, remedy)
	}
	recorded, err := parse(bytes.NewReader(text), file, nil)
	if err != nil {
		return err
	}
	if err := measured.compare(recorded); err != nil {
		return err
	}
	_, err = fmt.Printf("%d benchmarks allocate no more than recorded.\n", len(measured))
	return err
}

// measure runs the benchmarks of a suite, with two processors on any machine.
func (s suite) measure(ctx context.Context, root string) (results, error) {
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", s.bench, "-benchmem", "-benchtime", s.benchtime, "-count", "3", "-cpu", "2", "./"+s.pkg)
	command.Dir = root
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", command, err, output)
	}
	found, err := parse(bytes.NewReader(output), s.pkg, s.but)
	return found, err
}
