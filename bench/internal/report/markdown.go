package report

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"

	"github.com/tidings-go/tidings/bench/internal/stack"
	"github.com/tidings-go/tidings/bench/internal/work"
)

// Markdown writes a table for each workload.
func (r Report) Markdown(w io.Writer) error {
	var text strings.Builder
	last := ""
	for _, result := range r.Cases {
		if result.Case.Work != last {
			last = result.Case.Work
			fmt.Fprintf(&text, "\n### %s\n\n", strings.ToUpper(last[:1])+last[1:])
			fmt.Fprintf(&text, "| work | client-go | Tidings | drop-in | Tidings is better by | drop-in is better by |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
		}
		fmt.Fprintf(&text, "| **%s** | | | | | |\n", strings.TrimPrefix(result.Case.String(), last+": "))
		for _, row := range result.Rows {
			row.markdown(&text)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (r *Row) markdown(w *strings.Builder) {
	fmt.Fprintf(w, "| %s", r.Metric.Name)
	for _, s := range []string{stack.ClientGo, stack.Native, stack.DropIn} {
		fmt.Fprintf(w, " | %s", r.value(s))
	}
	for _, s := range []string{stack.Native, stack.DropIn} {
		fmt.Fprintf(w, " | %s", r.ratio(s))
	}
	w.WriteString(" |\n")
}

// none stands for what there is no figure of.
const none = "–"

// value returns the median of a stack and the range of its runs.
func (r *Row) value(stack string) string {
	s := r.sample(stack)
	if s == nil {
		return none
	}
	low, high := s.Values[0], s.Values[len(s.Values)-1]
	text := r.format(median(s))
	if low != high {
		text += fmt.Sprintf(" (%s to %s)", r.format(low), r.format(high))
	}
	return text
}

func median(s *benchmath.Sample) float64 {
	return benchmath.AssumeNothing.Summary(s, 0.9).Center
}

// format writes a value with its unit.
func (r *Row) format(value float64) string {
	unit := r.Metric.Unit
	if value == 0 {
		return strings.TrimSpace("0 " + unit)
	}
	if unit == "×" {
		return fmt.Sprintf("%.2f×", value)
	}
	number := benchunit.Scale(value, benchunit.ClassOf(unit))
	digits := strings.TrimRight(number, "kMGTPnµumKi")
	return strings.TrimSpace(digits + " " + number[len(digits):] + unit)
}

// ratio returns by what factor a stack is better than client-go.
func (r *Row) ratio(s string) string {
	mine, theirs := r.sample(s), r.sample(stack.ClientGo)
	if mine == nil || theirs == nil {
		return none
	}
	better, worse := median(theirs), median(mine)
	if r.Metric.Better == work.Higher {
		better, worse = worse, better
	}
	switch {
	case better == worse:
		return factor(1)
	case worse == 0:
		return "none left"
	case better == 0:
		return "new"
	}
	text := factor(better / worse)
	if c := benchmath.AssumeNothing.Compare(mine, theirs); len(mine.Values) > 3 && c.P > 0.05 {
		text += " (not told apart)"
	}
	return text
}

func factor(f float64) string {
	switch {
	case f < 0.1:
		return fmt.Sprintf("%.2g×", f)
	case f < 0.95:
		return fmt.Sprintf("%.2f×", f)
	case f < 9.95:
		return fmt.Sprintf("%.1f×", f)
	}
	return fmt.Sprintf("%.0f×", f)
}
