package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// batchTime is the least total time of the tests of one process.
	batchTime = time.Second
	// testLimit bounds the processor time of one test without a mutant.
	testLimit = 6 * time.Second
	// coverLimit bounds the time of a test without a mutant on a busy machine.
	coverLimit = 5 * time.Minute
	// addressLimit bounds the memory that each process may map, in KiB.
	addressLimit = 8 << 20
)

// suite is the test binary of a package, with all mutants in it.
type suite struct {
	dir    string // relative to the root of the module
	abs    string
	binary string
	work   string
	flags  []string
	tests  []*test
}

// test is a test, an example or a fuzz target with its seeds.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

// buildSuites builds the test binaries of the packages and of the other suites.
func buildSuites(ctx context.Context, o options, work, overlay string) ([]*suite, error) {
	var suites []*suite
	for _, dir := range slices.Concat(o.packages, o.suites) {
		if slices.ContainsFunc(suites, func(s *suite) bool { return s.dir == dir }) {
			continue
		}
		s := &suite{dir: dir, abs: filepath.Join(o.dir, dir), work: work}
		s.binary = filepath.Join(work, strconv.Itoa(len(suites))+".test")
		began := time.Now()
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w",
			"-overlay", overlay, "-o", s.binary, "./"+dir)
		cmd.Dir = o.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go test -c ./%s: %w\n%s", dir, err, out)
		}
		if err := s.list(ctx); err != nil {
			return nil, err
		}
		log.Printf("%s: %d tests, built in %.0fs", dir, len(s.tests), time.Since(began).Seconds())
		suites = append(suites, s)
	}
	return suites, nil
}

// list finds the tests. rapid uses the same random values each time.
func (s *suite) list(ctx context.Context) error {
	if _, err := os.Stat(s.binary); errors.Is(err, os.ErrNotExist) {
		return nil // it has no tests
	}
	out, err := s.command(ctx, nil, "-test.list", "^(Test|Fuzz|Example)").Output()
	if err != nil {
		return fmt.Errorf("%s: list tests: %w\n%s", s.dir, err, out)
	}
	for name := range strings.FieldsSeq(string(out)) {
		s.tests = append(s.tests, &test{name: name, reaches: map[int]bool{}})
	}
	s.flags = []string{"-rapid.seed=1", "-rapid.checks=50", "-rapid.shrinktime=1ms",
		"-rapid.nofailfile"}
	if s.command(ctx, nil, append(s.flags, "-test.list", "^$")...).Run() != nil {
		s.flags = nil
	}
	return nil
}

// command returns a command that runs the test binary.
func (s *suite) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	script := fmt.Sprintf(`ulimit -v %d && exec "$0" "$@"`, addressLimit)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, s.binary}, args...)...)
	cmd.Dir, cmd.Env = s.abs, append(os.Environ(), "TMPDIR="+s.work)
	cmd.Env = append(cmd.Env, env...)
	cmd.WaitDelay = time.Second
	return cmd
}

// outcome is the result of the process of some tests.
type outcome struct {
	out    []byte
	failed bool
	took   time.Duration // of processors
}

// run runs tests.
func (s *suite) run(
	ctx context.Context, env string, timeout time.Duration, tests ...*test,
) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+time.Second)
	defer cancel()
	var names []string
	for _, t := range tests {
		names = append(names, regexp.QuoteMeta(t.name))
	}
	args := slices.Concat(s.flags, []string{"-test.run", "^(" + strings.Join(names, "|") + ")$",
		"-test.short", "-test.failfast", "-test.timeout", timeout.String()})
	cmd := s.command(ctx, []string{env}, args...)
	out, err := cmd.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) && ctx.Err() != context.DeadlineExceeded {
		return outcome{}, err
	}
	p := cmd.ProcessState
	return outcome{out: out, failed: err != nil, took: p.UserTime() + p.SystemTime()}, nil
}

// cover runs each test alone and records which mutants it reaches. It returns those that fail
// or take too long.
func (s *suite) cover(ctx context.Context, parallel int) (failing []string, err error) {
	began := time.Now()
	var mu sync.Mutex // guards failing
	err = each(ctx, parallel, s.tests, func(ctx context.Context, t *test) error {
		file, err := os.CreateTemp(s.work, "cover")
		if err != nil {
			return err
		}
		defer os.Remove(file.Name())
		defer file.Close()
		began := time.Now()
		end, err := s.run(ctx, "MUTANT_COVER="+file.Name(), coverLimit, t)
		if err != nil {
			return err
		}
		t.took = time.Since(began)
		if end.failed || end.took > testLimit {
			mu.Lock()
			defer mu.Unlock()
			failing = append(failing, fmt.Sprintf("%s %s: %s, %v of a processor", s.dir, t.name,
				reason(end.out),
				end.took.Round(time.Millisecond)))
			return nil
		}
		text, err := os.ReadFile(file.Name())
		for id := range bytes.FieldsSeq(text) {
			n, _ := strconv.Atoi(string(id))
			t.reaches[n] = true
		}
		return err
	})
	slices.SortFunc(s.tests, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
	log.Printf("%s: every test once in %.0fs", s.dir, time.Since(began).Seconds())
	return failing, err
}

// batches returns the tests that reach a mutant, the quick ones first, in groups that run
// in one process.
func (s *suite) batches(id int) [][]*test {
	var all [][]*test
	sum := batchTime
	for _, t := range s.tests {
		if !t.reaches[id] {
			continue
		}
		if sum >= batchTime {
			all, sum = append(all, nil), 0
		}
		all[len(all)-1] = append(all[len(all)-1], t)
		sum += t.took
	}
	return all
}

// each calls f for all, so many at a time, until the first error.
func each[T any](
	ctx context.Context, parallel int, all []T, f func(context.Context, T) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, parallel)
	var group sync.WaitGroup
	for _, v := range all {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			if err := f(ctx, v); err != nil {
				cancel(err)
			}
			<-slots
		})
	}
	group.Wait()
	return context.Cause(ctx)
}
