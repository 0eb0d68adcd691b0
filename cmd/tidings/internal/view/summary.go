package view

import (
	"fmt"
	"strings"
)

// Table renders the counts of types: what there is and what happened to it.
func Table(counts []TypeCount, p Palette) string {
	header := []string{"", "objects", "added", "updated", "deleted"}
	rows := [][]string{header}
	var total TypeCount
	for _, c := range counts {
		rows = append(rows, tableRow(Printable(strings.TrimPrefix(c.Of.Context+" "+c.Of.Plural, " ")), c))
		total.Initial += c.Initial
		total.Added += c.Added
		total.Updated += c.Updated
		total.Deleted += c.Deleted
	}
	if len(counts) > 1 {
		rows = append(rows, tableRow("total", total))
	}
	widths := make([]int, len(header))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		line := fmt.Sprintf("  %-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		switch {
		case n == 0:
			line = p.Dim(line)
		case n == len(rows)-1 && len(counts) > 1:
			line = p.Bold(line)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func tableRow(name string, c TypeCount) []string {
	return []string{name, Count(c.Live()), Count(c.Added), Count(c.Updated), Count(c.Deleted)}
}
