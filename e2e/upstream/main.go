// Command upstream runs the tests of programs that were written for client-go's informers
// on Tidings' drop-in: Kubernetes' controllers, scheduler and admission plugins, and
// controller-runtime's cache, sources and managers, which get a real API server.
//
// It copies a module out of the module cache, replaces the imports of client-go's packages
// by those of the drop-in, in the tests and in what they test, and changes nothing else.
//
//	go run ./upstream                     # all, about half an hour
//	go run ./upstream -only 'job|daemon'  # the packages whose names match
//	go run ./upstream -original           # as they are: on client-go's informers
//	go run ./upstream -list
//
// Run it in the directory e2e. It prints a line for each package, and what a package that
// fails has printed. A test that fails on both stacks is not about informers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	only     *regexp.Regexp
	list     bool
	original bool
	timeout  time.Duration
}

func parse(arguments []string) (o options, err error) {
	flags := flag.NewFlagSet("upstream", flag.ContinueOnError)
	only := flags.String("only", "", "a regular expression: run the packages whose names match")
	flags.BoolVar(&o.list, "list", false, "list the packages and run none")
	flags.BoolVar(&o.original, "original", false, "replace no imports: run the tests on client-go's informers")
	flags.DurationVar(&o.timeout, "timeout", 15*time.Minute, "the time that the tests of a package have")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag; the packages are chosen with -only", flags.Arg(0))
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	return o, nil
}

func run(ctx context.Context, out io.Writer, arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	r := newResults(out)
	for _, s := range suites {
		if err := runSuite(ctx, s, o, r); err != nil {
			return fmt.Errorf("%s: %w", s.module, err)
		}
	}
	switch {
	case o.list:
		return nil
	case r.packages == 0:
		return fmt.Errorf("no package with tests matches %q; -list names them", o.only)
	case len(r.failed) > 0:
		return fmt.Errorf("%d of %d packages failed: %s", len(r.failed), r.packages, strings.Join(r.failed, ", "))
	}
	fmt.Fprintf(out, "%d tests of %d packages passed, %d were skipped\n", r.passed, r.packages, r.skipped)
	return nil
}

// runSuite runs the packages of a suite that are chosen.
func runSuite(ctx context.Context, s suite, o options, r *results) (err error) {
	dir, err := directory(s, o.original)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := prepare(ctx, s, dir, o.original)
	if err != nil {
		return err
	}
	packages, err := w.packages(ctx, s, o.only)
	if err != nil || len(packages) == 0 {
		return err
	}
	if o.list {
		fmt.Fprintln(r.out, strings.Join(packages, "\n"))
		return nil
	}
	flags := []string{"-timeout", o.timeout.String(), "-skip", s.skip}
	if !s.server {
		return w.test(ctx, packages, nil, flags, r)
	}
	for _, p := range packages {
		if err := w.testWithServer(ctx, dir, p, flags, r); err != nil {
			return err
		}
	}
	return nil
}

// directory returns an empty directory, the same for every run, so that the go command
// finds what it has built before.
func directory(s suite, original bool) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := path.Base(s.module)
	if original {
		name += "-original"
	}
	dir := filepath.Join(cache, "tidings", "upstream", name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// modules lets the go command add to the copy's go.mod and go.sum what the tests require
// and the module's users do not.
const modules = "-mod=mod"

// packages returns the packages of a suite whose names match and that have tests.
func (w workspace) packages(ctx context.Context, s suite, only *regexp.Regexp) ([]string, error) {
	arguments := []string{"list", modules, "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}
	for _, p := range s.packages {
		arguments = append(arguments, s.module+"/"+p)
	}
	text, err := goOutput(ctx, w.main, arguments...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(string(text)), func(p string) bool { return !only.MatchString(p) }), nil
}

// testWithServer runs the tests of a package with an API server that has nothing in it yet.
func (w workspace) testWithServer(ctx context.Context, dir, name string, flags []string, r *results) (err error) {
	server, environment, err := startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return w.test(ctx, []string{name}, environment, flags, r)
}

// test runs the tests of packages, one package after the other: many of them measure time.
func (w workspace) test(ctx context.Context, packages, environment, flags []string, r *results) error {
	c := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", modules, "-json", "-p=1"}, flags, packages)...)
	c.Dir = w.main
	c.Env = append(os.Environ(), environment...)
	c.Stderr = os.Stderr
	events, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	failed := len(r.failed)
	read := r.read(events)
	if read != nil {
		_, _ = io.Copy(io.Discard, events) // so that it ends
	}
	if err := c.Wait(); err != nil && len(r.failed) == failed {
		return errors.Join(read, fmt.Errorf("go test: %w", err)) // it is not about a package
	}
	return read
}
