package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/bench/internal/report"
	"github.com/tidings-go/tidings/bench/internal/stack"
	"github.com/tidings-go/tidings/bench/internal/work"
)

// TestMain lets the program of the tests be what a Runner starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == report.Worker || os.Args[1] == report.Server) {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestProcesses runs a few cases as a benchmark does: each in a process, some with a
// server in another.
func TestProcesses(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runner := report.Runner{
		Program: program, Size: work.Tiny, Runs: 2, Progress: io.Discard,
		Only: regexp.MustCompile(`^sync: [\d,]+ pods, protobuf, (streamed|paged), 1 handler$|^idle`),
	}
	result, err := runner.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Cases) != 3 {
		t.Fatalf("%d cases ran, want 3", len(result.Cases))
	}
	for _, c := range result.Cases {
		for _, row := range c.Rows {
			for _, s := range stack.All() {
				if n := len(row.Samples[s.Name()]); n != runner.Runs {
					t.Errorf("%s: %s has %d values of %s, want %d", c.Case, row.Metric.Name, n, s.Name(), runner.Runs)
				}
			}
		}
	}
	head, err := report.Head(result, []string{"-quick"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(head, "client-go v0.37.1") {
		t.Errorf("the head does not say which client-go was measured:\n%s", head)
	}
}

// TestProcessFails asks that a worker which fails ends with its error in the report's.
func TestProcessFails(t *testing.T) {
	if err := run(t.Context(), []string{report.Worker, `{"Stack":"none"}`}); err == nil || !strings.Contains(err.Error(), `no stack "none"`) {
		t.Errorf("the error is %v; it should name the stack", err)
	}
	if err := run(t.Context(), []string{"sync"}); err == nil || !strings.Contains(err.Error(), "bench -help") {
		t.Errorf("the error is %v; it should name the help", err)
	}
}
