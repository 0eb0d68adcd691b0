package controllers

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var size = flag.String("size", "tiny", "how much TestCosts does: full is for results, quick for "+
	"a look, tiny for tests")

// pick returns the value for the size.
func pick[T any](tiny, quick, full T) T {
	switch *size {
	case "tiny":
		return tiny
	case "quick":
		return quick
	case "full":
		return full
	}
	panic("-size is one of tiny, quick and full")
}

// waitLimit bounds the waits of a case.
const waitLimit = 10 * time.Minute

// cost is a row of figures that depend on the machine.
type cost struct {
	name, target string
	figures      map[string]string // by the name of the stack
}

// TestCosts measures figures that depend on the machine, and prints the table. It does not compare
// the figures with their targets: other programs on the machine influence them.
func TestCosts(t *testing.T) {
	var table table
	for _, part := range []struct {
		name    string
		measure func(*testing.T) []cost
	}{
		{"References", references},
		{"EmptyCalls", emptyCalls},
		{"Keys", keyMemory},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, c := range part.measure(t) {
				table.add(c.name, c.figures, c.target)
			}
		})
	}
	t.Logf("\n%s", table.String())
}

// await waits until a channel has a value or is closed.
func await(t *testing.T, done <-chan struct{}, missing string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(waitLimit):
		t.Fatalf("after %v: %s", waitLimit, missing)
	}
}

// millis formats a duration.
func millis(d time.Duration) string { return fmt.Sprintf("%.3g ms", d.Seconds()*1000) }

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
