package controllers

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
)

// testCase is a program that is measured on several stacks.
type testCase struct {
	// name begins with the number of the contract, and unit is that of the figure.
	name, unit string
	// target is the aim of Tidings as text, and most is the largest figure that meets it.
	target string
	most   float64
	stacks []stack
	// measure returns the figure of a stack.
	measure func(w *world, s stack) float64
}

var (
	threeStacks = []stack{ours, controllerRuntime, clientGo}
	allStacks   = []stack{ours, controllerRuntime, consistent, clientGo}
)

// TestCases runs the cases whose figures do not depend on the machine, and prints their table. It
// fails where Tidings misses a target. The figures of the other stacks are only printed.
func TestCases(t *testing.T) {
	cases := []testCase{
		{"C3 stale calls beside 20 status writes", "", "0", 0, allStacks, staleAfterStatus},
		{"C3 stale calls after the last finalizer", "", "0", 0, allStacks, staleAfterFinalizer},
		{"C4 wait of the initial list behind 30 s of changes", "s", "≤ 21.2 s", initialWait,
			threeStacks, waitOfInitialList},
		{"C4 wait beside a noisy namespace, 1 worker", "s", "≤ 0.51 s", othersWait, threeStacks,
			waitOfOthers(1)},
		{"C4 wait beside a noisy namespace, 2 workers", "s", "≤ 0.51 s", othersWait, threeStacks,
			waitOfOthers(2)},
		{"C10 writes sent after the lease was up", "", "0", 0, threeStacks, lateWrites},
		{"C9 overlap of calls, a call of 8 s drains", "s", "0 s", 0, threeStacks, overlapOf(8)},
		{"C9 overlap of calls, a call of 40 s drains", "s", "0 s", 0, threeStacks, overlapOf(40)},
		{"C11 planned take-over", "s", "< 1 s", 0.999, threeStacks, plannedTakeOver},
		{"C11 take-over after a crash", "s", "≤ 17 s", 17, threeStacks, crashedTakeOver},
	}
	var table table
	for _, c := range cases {
		figures := map[string]string{}
		for _, s := range c.stacks {
			t.Run(strings.ReplaceAll(c.name+"/"+s.name, " ", "_"), func(t *testing.T) {
				inWorld(t, func(w *world) {
					figure := c.measure(w, s)
					figures[s.name] = strings.TrimSpace(fmt.Sprintf("%.4g %s", figure, c.unit))
					if s.name == ours.name && figure > c.most {
						t.Errorf("%s: %s, want %s", c.name, figures[s.name], c.target)
					}
				})
			})
		}
		table.add(c.name, figures, c.target)
	}
	t.Logf("\n%s", table.String())
}

// table collects the rows of the cases.
type table struct{ rows []string }

// add adds a row, with the figures by the name of their stack.
func (t *table) add(name string, figures map[string]string, target string) {
	row := []string{name}
	for _, s := range allStacks {
		figure, ok := figures[s.name]
		if !ok {
			figure = "–"
		}
		row = append(row, figure)
	}
	t.rows = append(t.rows, strings.Join(append(row, target), "\t"))
}

func (t *table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := []string{"case"}
	for _, s := range allStacks {
		head = append(head, s.name)
	}
	fmt.Fprintln(w, strings.Join(append(head, "target of Tidings"), "\t"))
	fmt.Fprintln(w, strings.Join(t.rows, "\n"))
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	return b.String()
}
