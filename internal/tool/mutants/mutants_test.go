package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTiny runs all mutants of a package whose survivors are known.
func TestTiny(t *testing.T) {
	excuse := []map[string]string{
		{"file": "tiny.go", "function": "Name", "in": "case 1:",
			"before": `return "one"`, "after": "", "reason": "an example"},
		{"file": "tiny.go", "function": "Gone", "before": "a", "after": "b", "reason": "an example"},
	}
	o := options{dir: "testdata/tiny", packages: []string{"."}, parallel: 2, slack: time.Second}
	o.known = filepath.Join(t.TempDir(), "known.json")
	text, err := json.Marshal(excuse)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.known, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]verdict{}
	for _, x := range r.results {
		got[x.Function+": "+x.Kind+": "+x.After] = x.Verdict
	}
	for mutant, want := range map[string]verdict{
		"Below: <: return a <= b":                     uncovered,
		"Below: negate: return !(a < b)":              killed,
		"Root: never: if false {":                     killed,
		"Root: <: if n <= 0 {":                        killed,
		"Root: no error: return 0, nil":               killed,
		"Root: drop: ":                                timeout,
		"Root: constant: return (0 + 1), errNegative": survived,
		"Root: +: for (root - 1)*(root+1) <= n {":     killed,
		"Name: drop: ":                                excused,
		"(*Counter).Add: drop: ":                      killed,
		"First: case: case v := <-never:":             timeout,
		"First: case: case <-never:":                  survived,
		"Untested: operand: return true && b":         uncovered,
		"Untested: negate: return !(a && b)":          uncovered,
	} {
		if got[mutant] != want {
			t.Errorf("%q: %q, want %q", mutant, got[mutant], want)
		}
	}
	if len(r.stale) != 1 || r.stale[0].Function != "Gone" {
		t.Errorf("stale: %v", r.stale)
	}
	if len(r.leftOut) != 1 || !strings.Contains(r.leftOut[0], "TestFails") {
		t.Errorf("left out: %q", r.leftOut)
	}
	var page bytes.Buffer
	r.write(&page)
	if want := "uncovered: < in Below\n  func Below(a, b int) bool {\n- return a < b\n+ return a <= b\n"; !strings.Contains(page.String(), want) {
		t.Errorf("no %q in\n%s", want, &page)
	}
}

// TestKnownSurvivorsNameCode: the code of each entry stands in its file. A run notices only those
// in the packages that it changes.
func TestKnownSurvivorsNameCode(t *testing.T) {
	entries, err := readKnown("survivors.json")
	if err != nil {
		t.Fatal(err)
	}
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for e := range entries {
		code, err := os.ReadFile(filepath.Join("../../..", e.File))
		if err != nil {
			t.Error(err)
		} else if in := words(string(code)); !strings.Contains(in, words(e.Block)) || !strings.Contains(in, words(e.Before)) {
			t.Errorf("%s has no longer %q in %q", e.File, e.Before, e.Block)
		}
	}
}

// TestSampleIsRepeatable draws the same sample for the same seed, and another for another.
func TestSampleIsRepeatable(t *testing.T) {
	all := make([]*mutant, 100)
	for i := range all {
		all[i] = &mutant{id: i}
	}
	first, again := pick(all, options{sample: 10, seed: 1}), pick(all, options{sample: 10, seed: 1})
	if !slices.Equal(first, again) {
		t.Error("one seed drew two samples")
	}
	if slices.Equal(first, pick(all, options{sample: 10, seed: 2})) {
		t.Error("two seeds drew the same sample")
	}
}
