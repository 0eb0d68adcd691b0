package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// event is a line of the output of go test -json. See go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a package that is built, in place of Package
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// results counts the results of tests, and prints a line for each package.
type results struct {
	out      io.Writer
	packages int      // with tests
	passed   int      // tests without those of their own, subtests among them, and Ginkgo's specs
	skipped  int      // of them
	failed   []string // packages

	running map[string]*running // by package
}

// running is a package whose tests run.
type running struct {
	output          strings.Builder
	passed, skipped int
	failed          []string
}

// read counts the events of a run until its end.
func (r *results) read(events io.Reader) error {
	d := json.NewDecoder(events)
	for {
		var e event
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("output of go test -json: %w", err)
		}
		r.add(e)
	}
}

// specs is the line in which Ginkgo counts.
var specs = regexp.MustCompile(`(\d+) Passed.* (\d+) Failed.* (\d+) Skipped`)

func (r *results) add(e event) {
	name := e.Package + e.ImportPath
	p := r.running[name]
	if p == nil {
		p = &running{}
		r.running[name] = p
	}
	switch {
	case e.Action == "output" || e.Action == "build-output":
		p.output.WriteString(e.Output)
		if m := specs.FindStringSubmatch(colours.ReplaceAllString(e.Output, "")); m != nil {
			passed, _ := strconv.Atoi(m[1]) // digits
			skipped, _ := strconv.Atoi(m[3])
			p.passed, p.skipped = p.passed+passed, p.skipped+skipped
		}
	case e.Test != "" && e.Action == "pass":
		p.passed++
	case e.Test != "" && e.Action == "skip":
		p.skipped++
	case e.Test != "" && e.Action == "fail":
		p.failed = append(p.failed, e.Test)
	case e.Test == "" && e.ImportPath == "":
		r.end(e, p)
	}
}

// end counts a package whose tests have ended.
func (r *results) end(e event, p *running) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(r.out, "ok    %-70s %5d tests %6.1f s\n", e.Package, p.passed, e.Elapsed)
	case "fail":
		r.failed = append(r.failed, e.Package)
		if built := r.running[e.FailedBuild]; built != nil {
			fmt.Fprint(r.out, built.output.String())
		}
		fmt.Fprintf(r.out, "%sFAIL  %-70s %s\n",
			p.output.String(), e.Package, strings.Join(p.failed, ", "))
	default:
		return // it starts, or has no tests
	}
	r.packages++
	r.passed += p.passed
	r.skipped += p.skipped
	delete(r.running, e.Package)
}

// colours are the escape sequences that Ginkgo prints.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)
