package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// columns are those of the table.
var columns = []struct {
	title  string
	format string
	value  func(figures) float64
}{
	{"peak, MB", "%.0f", func(f figures) float64 { return f.peak / 1e6 }},
	{"resident, MB", "%.0f", func(f figures) float64 { return f.resident / 1e6 }},
	{"live heap, MB", "%.0f", func(f figures) float64 { return f.heap / 1e6 }},
	{"CPU of the start, s", "%.2f", func(f figures) float64 { return f.cpu.Seconds() }},
	{"CPU later, s", "%.2f", func(f figures) float64 { return f.later.Seconds() }},
	{"start, s", "%.2f", func(f figures) float64 { return f.wall.Round(time.Millisecond).Seconds() }},
}

// table returns the results in Markdown: the median of each figure, and the range in parentheses.
func table(all []*copies) string {
	var b strings.Builder
	b.WriteString("| program | |")
	for _, column := range columns {
		fmt.Fprintf(&b, " %s |", column.title)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(columns)) + "\n")
	for _, c := range all {
		name := c.name + " " + c.version
		for _, v := range variants {
			fmt.Fprintf(&b, "| %s | %s |", name, v)
			for _, column := range columns {
				b.WriteString(" " + cell(column.format, c.results[v], column.value) + " |")
			}
			b.WriteString("\n")
			name = ""
		}
	}
	return b.String()
}

func cell(format string, results []figures, value func(figures) float64) string {
	var values []float64
	for _, f := range results {
		values = append(values, value(f))
	}
	slices.Sort(values)
	n := len(values)
	median := (values[(n-1)/2] + values[n/2]) / 2
	lowest, highest := fmt.Sprintf(format, values[0]), fmt.Sprintf(format, values[n-1])
	if lowest == highest {
		return fmt.Sprintf(format, median)
	}
	return fmt.Sprintf(format+" (%s–%s)", median, lowest, highest)
}
