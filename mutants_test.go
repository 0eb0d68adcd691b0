package tidings_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var withMutants = flag.Bool("mutants", false, "take each guard out in turn and require that the tests of its faults fail")

// mutantTimeout is how long the tests of a guard that was taken out may run. Without
// some of the guards they come to no end, for virtual time does not move.
const mutantTimeout = time.Minute

// TestGuards finds every guard in its place, so that what the rows say stays true. With
// -mutants it also takes each of them out in turn, in a copy that is laid over its file,
// and requires that the tests of all rows that name it fail then. That builds this
// package once for every guard: make mutants does it.
func TestGuards(t *testing.T) {
	tests := testsHere(t)
	for _, row := range faultRows() {
		if name, _, _ := strings.Cut(row.existing, "/"); name != "" && !tests[name] {
			t.Errorf("%s: there is no test %s", row.name, name)
		}
	}
	for _, m := range mutants() {
		t.Run(path.Dir(m.guard.file)+"."+m.guard.function+": "+m.guard.why, func(t *testing.T) {
			text, err := m.guard.takenOut()
			if err != nil {
				t.Fatal(err)
			}
			if *withMutants {
				m.dies(t, text)
			}
		})
	}
}

// testsHere are the names of the tests of this package.
func testsHere(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllSubmatch(text, -1) {
			tests[string(match[1])] = true
		}
	}
	return tests
}

// takenOut returns the file of a guard without it.
func (g guard) takenOut() ([]byte, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, g.file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(g.file)
	if err != nil {
		return nil, err
	}
	for _, f := range functionsOf(parsed) {
		if receiver(f)+f.Name.Name != g.function {
			continue
		}
		begin, end := files.Position(f.Body.Pos()).Offset, files.Position(f.Body.End()).Offset
		body := string(text[begin:end])
		if n := strings.Count(body, g.code); n != 1 {
			return nil, fmt.Errorf("%s in %s has %d times %q, want it once: %s", g.function, g.file, n, g.code, g.why)
		}
		return []byte(string(text[:begin]) + strings.Replace(body, g.code, g.without, 1) + string(text[end:])), nil
	}
	return nil, fmt.Errorf("%s has no function %s", g.file, g.function)
}

// mutant is a guard with the rows that name it.
type mutant struct {
	guard guard
	rows  []faultRow
}

// mutants returns the guards, each once.
func mutants() []mutant {
	var all []mutant
	for _, row := range faultRows() {
		for _, g := range row.guards {
			i := slices.IndexFunc(all, func(m mutant) bool {
				return m.guard.file == g.file && m.guard.function == g.function && m.guard.code == g.code && m.guard.without == g.without
			})
			if i < 0 {
				i = len(all)
				all = append(all, mutant{guard: g})
			}
			all[i].rows = append(all[i].rows, row)
		}
	}
	return all
}

// dies runs the tests of the rows against the text of the file without the guard.
func (m mutant) dies(t *testing.T, text []byte) {
	began := time.Now()
	binary := m.build(t, text)
	t.Logf("built in %.1fs", time.Since(began).Seconds())
	for _, row := range m.rows {
		began := time.Now()
		why := failure(t, binary, row)
		if why == "" {
			t.Errorf("%q passes without %q of %s: either the test is not sharp or something else guards", row.name, m.guard.code, m.guard.function)
			continue
		}
		t.Logf("%q fails after %.1fs: %s", row.name, time.Since(began).Seconds(), why)
	}
}

// build builds the tests of this package with that text in the place of the file.
func (m mutant) build(t *testing.T, text []byte) (binary string) {
	t.Helper()
	dir := t.TempDir()
	copied, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	original, err := filepath.Abs(m.guard.file)
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {original: copied}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replaced, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "mutant.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// failure runs the test of a row and returns why it fails, "" if it does not.
func failure(t *testing.T, binary string, row faultRow) string {
	t.Helper()
	name := row.existing
	if name == "" {
		name = "TestFaults/" + strings.ReplaceAll(row.name, " ", "_")
	}
	var pattern []string
	for part := range strings.SplitSeq(name, "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*mutantTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "-test.run", strings.Join(pattern, "/"), "-test.failfast", "-test.timeout", mutantTimeout.String()).CombinedOutput()
	if strings.Contains(string(out), "no tests to run") {
		t.Fatalf("%s runs nothing", name)
	}
	if err == nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if said := regexp.MustCompile(`^(\w+_test\.go:\d+: |panic: )`).MatchString(line); said {
			return line[:min(len(line), 200)]
		}
	}
	t.Fatalf("%s did not run: %v\n%s", name, err, out)
	return ""
}
