package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// outcome counts the tests of a program. Tests within a test count, too.
type outcome struct {
	passed, skipped int
	failed          map[string]string // with the output
	notBuilt        string            // the output of a package that does not build
}

// testAll runs the tests of all programs that have some, in both variants.
func testAll(ctx context.Context, all []*copies) error {
	fmt.Println("| program | packages | | passed | skipped | failed |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	different := false
	for _, c := range all {
		if c.packages == nil {
			continue
		}
		outcomes := map[variant]*outcome{}
		for _, v := range variants {
			log.Printf("%s, %s: go test", c.name, v)
			o, err := c.test(ctx, v)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.name, v, err)
			}
			outcomes[v] = o
			name, packages := c.name+" "+c.version, strings.Join(c.packages, " ")
			if v == after {
				name, packages = "", ""
			}
			fmt.Printf("| %s | %s | %s | %d | %d | %d |\n",
				name, packages, v, o.passed, o.skipped, len(o.failed))
			if o.notBuilt != "" {
				log.Printf("%s, %s does not build:\n%s", c.name, v, indent(o.notBuilt))
			}
		}
		different = outcomes[after].report(c.name, outcomes[before]) || different
	}
	if different {
		return errors.New("tests fail in one variant alone")
	}
	return nil
}

// report logs the tests that fail, and reports whether they do after the change alone.
func (o *outcome) report(name string, earlier *outcome) (different bool) {
	different = o.notBuilt != "" && earlier.notBuilt == ""
	for _, test := range slices.Sorted(maps.Keys(o.failed)) {
		if _, ok := earlier.failed[test]; ok {
			log.Printf("%s: %s fails in both variants", name, test)
			continue
		}
		different = true
		log.Printf("%s: %s fails after the change:\n%s", name, test, indent(o.failed[test]))
	}
	for _, test := range slices.Sorted(maps.Keys(earlier.failed)) {
		if _, ok := o.failed[test]; !ok {
			log.Printf("%s: %s fails before the change alone:\n%s",
				name, test, indent(earlier.failed[test]))
		}
	}
	return different
}

// test runs the tests of a variant, one package after the other: many of them measure time.
func (c *copies) test(ctx context.Context, v variant) (*outcome, error) {
	arguments := append([]string{
		"test", modules, "-json", "-p=1", "-timeout=20m", "-vet=off", "-skip=" + c.skip,
	}, c.packages...)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = c.dirs[v]
	var failure bytes.Buffer
	command.Stderr = &failure
	events, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	o := &outcome{failed: map[string]string{}}
	read := o.read(events)
	if read != nil {
		_, _ = io.Copy(io.Discard, events) // so that it ends
	}
	if err := command.Wait(); err != nil && len(o.failed) == 0 && o.notBuilt == "" {
		return nil, fmt.Errorf("go test: %w\n%s", errors.Join(read, err), failure.Bytes())
	}
	return o, read
}

// read reads the events of go test -json.
func (o *outcome) read(from io.Reader) error {
	output := map[string]*strings.Builder{}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e struct{ Action, Package, Test, Output string }
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		name := strings.TrimSpace(e.Package + " " + e.Test)
		switch {
		case e.Action == "output":
			if output[name] == nil {
				output[name] = new(strings.Builder)
			}
			output[name].WriteString(e.Output)
		case e.Action == "build-output":
			o.notBuilt += e.Output
		case e.Test == "" && e.Action == "fail":
			// A package fails with one of its tests, or alone.
			if !slices.ContainsFunc(slices.Collect(maps.Keys(o.failed)), func(test string) bool {
				return strings.HasPrefix(test, e.Package+" ")
			}) {
				o.failed[name] = text(output[name])
			}
		case e.Test == "":
		case e.Action == "pass":
			o.passed++
		case e.Action == "skip":
			o.skipped++
		case e.Action == "fail":
			o.failed[name] = text(output[name])
		}
		if e.Action == "pass" || e.Action == "skip" {
			delete(output, name)
		}
	}
}

func text(b *strings.Builder) string {
	if b == nil {
		return ""
	}
	return b.String()
}
