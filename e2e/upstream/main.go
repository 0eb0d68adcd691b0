// Command upstream runs the tests of programs that were written for client-go's informers
// on Tidings' drop-in: Kubernetes' controllers, scheduler and admission plugins, and
// controller-runtime's cache, sources and managers, which get a real API server. So do the
// controllers of Cluster API, whose managers get the cache of module ctrlruntime, and those of two
// projects of kubebuilder's book, which kubebuilder itself makes and `tidings serve` tests.
//
// It copies a module out of the module cache, replaces the imports of client-go's packages
// by those of the drop-in, or controller-runtime's cache by that of ctrlruntime, in the tests
// and in the code under test, and changes nothing else. Cluster API is built with the versions
// of Kubernetes and controller-runtime that ctrlruntime requires, which are later than its own.
//
//	go run ./upstream                     # all, more than half an hour
//	go run ./upstream -only 'job|daemon'  # the packages whose names match
//	go run ./upstream -original           # on the informers of client-go and controller-runtime
//	go run ./upstream -list
//
// Run it in the directory e2e. It prints a line for each package, and the output of a package
// that fails. A test that fails on both stacks is not about informers.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/internal/tool/migration"
)

// options are the flags.
type options struct {
	only     *regexp.Regexp
	list     bool
	original bool
	timeout  time.Duration
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("upstream: ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	only := flag.String("only", "", "a regular expression: run the packages whose names match")
	flag.BoolVar(&o.list, "list", false, "list the packages and run none")
	flag.BoolVar(&o.original, "original", false,
		"replace nothing: run on the informers of client-go and controller-runtime")
	flag.DurationVar(&o.timeout, "timeout", 15*time.Minute, "the time limit of a package's tests")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		log.Fatalf("-only: %v", err)
	}
	if err := run(ctx, os.Stdout, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, o options) error {
	r := &results{out: out, running: map[string]*running{}}
	for i, s := range suites {
		if o.original && i > 0 && s.module == suites[i-1].module && s.tutorial == "" {
			continue // without its replacements it is the suite before it
		}
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
		return fmt.Errorf("%d of %d packages failed: %s",
			len(r.failed), r.packages, strings.Join(r.failed, ", "))
	}
	fmt.Fprintf(out, "%d tests of %d packages passed, %d were skipped\n",
		r.passed, r.packages, r.skipped)
	return nil
}

// runSuite runs the selected packages of a suite.
func runSuite(ctx context.Context, s suite, o options, r *results) (err error) {
	if s.tutorial != "" && !slices.ContainsFunc(s.packages, func(p string) bool {
		return o.only.MatchString(s.project + "/" + p)
	}) {
		return nil // before the project is made
	}
	dir, err := directory(s, o.original)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	main, err := prepare(ctx, s, dir, o.original)
	if err != nil {
		return err
	}
	packages, err := packagesOf(ctx, main, s, o.only)
	if err != nil || len(packages) == 0 {
		return err
	}
	if o.list {
		fmt.Fprintln(r.out, strings.Join(packages, "\n"))
		return nil
	}
	flags := []string{"-timeout", o.timeout.String(), "-skip", s.skip}
	switch {
	case s.serve:
		command, err := buildCommand(ctx, dir)
		if err != nil {
			return err
		}
		return test(ctx, main, packages, existing, flags, r, command, "serve", "--")
	case !s.server:
		return test(ctx, main, packages, nil, flags, r)
	}
	for _, p := range packages {
		if err := testWithServer(ctx, dir, main, p, flags, r); err != nil {
			return err
		}
	}
	return nil
}

// directory returns an empty directory, the same for every run, so that the go command
// reuses its builds.
func directory(s suite, original bool) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := cmp.Or(s.tutorial, path.Base(s.module))
	if original {
		name += "-original"
	}
	if s.newCache {
		name += "-newcache"
	}
	dir := filepath.Join(cache, "tidings", "upstream", name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// modules lets the go command add the requirements of the tests alone to the copy's go.mod and
// go.sum.
const modules = "-mod=mod"

// packagesOf returns the packages of a suite whose names match and that have tests.
func packagesOf(
	ctx context.Context, main string, s suite, only *regexp.Regexp,
) ([]string, error) {
	const withTests = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"
	arguments := []string{"list", modules, "-f", withTests}
	for _, p := range s.packages {
		arguments = append(arguments, cmp.Or(s.project, s.module)+"/"+p)
	}
	text, err := migration.Go(ctx, main, arguments...)
	if err != nil {
		return nil, err
	}
	unwanted := func(p string) bool { return !only.MatchString(p) }
	return slices.DeleteFunc(strings.Fields(string(text)), unwanted), nil
}

// testWithServer runs the tests of a package with a new API server.
func testWithServer(
	ctx context.Context, dir, main, name string, flags []string, r *results,
) (err error) {
	server, environment, err := startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return test(ctx, main, []string{name}, environment, flags, r)
}

// test runs the tests of packages, one package after the other: many of them measure time. The
// command of the tests follows the words of runner, if there are any.
func test(
	ctx context.Context, main string, packages, environment, flags []string, r *results,
	runner ...string,
) error {
	command := slices.Concat(runner, []string{"go", "test", modules, "-json", "-p=1"}, flags, packages)
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir, c.Env, c.Stderr = main, append(os.Environ(), environment...), os.Stderr
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
		return errors.Join(read, fmt.Errorf("go test: %w", err)) // no package failed
	}
	return read
}
