package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// known are the survivors that change nothing that the contract promises.
type known []knownMutant

type knownMutant struct {
	change
	Reason string `json:"reason"`
}

func readKnown(name string) (known, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var k known
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return k, nil
}

// readSurvivors reads those of a file of results.
func readSurvivors(name string) ([]change, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var survivors []change
	for decoder := json.NewDecoder(file); ; {
		var r result
		if err := decoder.Decode(&r); err == io.EOF {
			return survivors, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if r.Verdict == survived || r.Verdict == uncovered {
			survivors = append(survivors, r.change)
		}
	}
}

// reason returns why a mutant may survive, "" if it may not.
func (k known) reason(m *mutant) string {
	for _, e := range k {
		if m.is(e.change) {
			return e.Reason
		}
	}
	return ""
}

// stale returns the entries for files of these mutants that none of the mutants matches.
func (k known) stale(all []*mutant) known {
	var stale known
	for _, e := range k {
		in := slices.ContainsFunc(all, func(m *mutant) bool { return m.File == e.File })
		if in && !slices.ContainsFunc(all, func(m *mutant) bool { return m.is(e.change) }) {
			stale = append(stale, e)
		}
	}
	return stale
}

// report is the result of a run.
type report struct {
	seed    uint64
	found   int
	leftOut []string
	stale   known
	results []result
}

func (r *report) with(v verdict) []result {
	return slices.DeleteFunc(slices.Clone(r.results), func(x result) bool { return x.Verdict != v })
}

// write writes the report as text.
func (r *report) write(to io.Writer) {
	fmt.Fprintf(to, "%d of %d mutants, seed %d\n\n", len(r.results), r.found, r.seed)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "package\tmutants\tkilled\ttimeout\tknown\tsurvived\tuncovered\t")
	type count struct {
		name string
		verdict
	}
	counts := map[count]int{}
	var packages []string
	for _, x := range r.results {
		if !slices.Contains(packages, x.Package) {
			packages = append(packages, x.Package)
		}
		for _, name := range []string{x.Package, "all"} {
			counts[count{name, x.Verdict}]++
			counts[count{name, "all"}]++
		}
	}
	for _, name := range append(packages, "all") {
		fmt.Fprint(table, name, "\t")
		for _, v := range []verdict{"all", killed, timeout, excused, survived, uncovered} {
			fmt.Fprint(table, counts[count{name, v}], "\t")
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	for _, v := range []verdict{survived, uncovered} {
		for _, x := range r.with(v) {
			fmt.Fprintf(to, "\n%s:%d: %s: %s in %s\n  %s\n- %s\n+ %s\n",
				x.File, x.Line, v, x.Kind, x.Function, x.Block, x.Before, x.After)
		}
	}
	for _, e := range r.stale {
		fmt.Fprintf(to, "\n%s: no longer a mutant of %s: remove it from the known ones\n- %s\n+ %s\n",
			e.File, e.Function, e.Before, e.After)
	}
	for _, name := range r.leftOut {
		fmt.Fprintf(to, "\nleft out, because it fails without a mutant or takes too long: %s\n", name)
	}
}

// save writes the results as JSON, one mutant per line.
func (r *report) save(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	encoder := json.NewEncoder(file)
	encoder.SetEscapeHTML(false)
	for _, x := range r.results {
		if err := encoder.Encode(x); err != nil {
			return err
		}
	}
	return file.Close()
}
