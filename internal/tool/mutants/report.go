package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
)

// known are the survivors that change nothing that the contract promises, with the reasons.
type known map[change]string

func readKnown(name string) (known, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var entries []struct {
		change
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	k := known{}
	for _, e := range entries {
		k[e.change] = e.Reason
	}
	return k, nil
}

// stale returns the entries for files of these mutants that none of the mutants matches.
func (k known) stale(all []*mutant) []change {
	files, stale := map[string]bool{}, maps.Clone(k)
	for _, m := range all {
		files[m.File] = true
		delete(stale, m.change)
	}
	return slices.Collect(func(yield func(change) bool) {
		for c := range stale {
			if files[c.File] && !yield(c) {
				return
			}
		}
	})
}

// report is the result of a run.
type report struct {
	seed    uint64
	found   int
	leftOut []string
	stale   []change
	results []result
}

func (r *report) with(v verdict) []result {
	return slices.DeleteFunc(slices.Clone(r.results), func(x result) bool { return x.Verdict != v })
}

// write writes the report as text.
func (r *report) write(to io.Writer) {
	fmt.Fprintf(to, "%d of %d mutants, seed %d\n\n", len(r.results), r.found, r.seed)
	counts := map[string]map[verdict]int{}
	for _, x := range r.results {
		for _, name := range []string{x.Package, "all"} {
			if counts[name] == nil {
				counts[name] = map[verdict]int{}
			}
			counts[name][x.Verdict]++
			counts[name]["mutants"]++
		}
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := []verdict{"mutants", killed, timeout, excused, survived, uncovered}
	fmt.Fprint(table, "package\t")
	for _, v := range columns {
		fmt.Fprint(table, v, "\t")
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprint(table, "\n", name, "\t")
		for _, v := range columns {
			fmt.Fprint(table, counts[name][v], "\t")
		}
	}
	fmt.Fprintln(table)
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
