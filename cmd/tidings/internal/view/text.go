package view

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/x/ansi"
)

// shortened returns at most width characters of text, with … at the end if some are missing; 0
// means any number.
func shortened(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Truncate(text, width, "…")
}

// shortenedInside returns at most width characters of text, with … in the middle if some are
// missing: both ends of a name are informative.
func shortenedInside(text string, width int) string {
	if n := ansi.StringWidth(text); n > width && width >= 3 {
		return ansi.Truncate(text, width/2, "") + ansi.TruncateLeft(text, n-(width-width/2-1), "…")
	}
	return text
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// Columns returns rows as a table whose columns are two spaces apart.
func Columns(rows [][]string) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Printable(cell)
		}
		fmt.Fprintln(table, strings.Join(row, "\t")) //nolint:errcheck // memory returns no error
	}
	table.Flush() //nolint:errcheck // memory returns no error
	return text.String()
}
